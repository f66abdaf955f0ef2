package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/certs"
	"github.com/statusd/statusd/internal/process"
)

// Bootstrap requests the kubeconfig of the node, if BootstrapKubeconfig is set and there is no
// usable kubeconfig. Bootstrap blocks until a certificate is approved and signed, or ctx ends. Call
// it before [New].
func Bootstrap(ctx context.Context, config Config, options Options) error {
	if config.BootstrapKubeconfig == "" {
		return nil
	}
	if err := config.Validate(); err != nil {
		return err
	}
	needed, err := certs.Needed(config.Kubeconfig, time.Now())
	if err != nil || !needed {
		return err
	}
	name, err := config.nodeName()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(config.StateDir, stateDirMode); err != nil {
		return fmt.Errorf("agent: state directory: %w", err)
	}
	return certs.Obtain(ctx, config.bootstrapOptions(name, options))
}

func (c *Config) bootstrapOptions(name string, options Options) certs.Options {
	return certs.Options{
		NodeName: name, Directory: filepath.Join(c.StateDir, pkiDirectory),
		Kubeconfig: c.Kubeconfig, Bootstrap: c.BootstrapKubeconfig, Logger: options.Logger,
	}
}

// followCredentials uses changed credentials from the next request on, without ending streams, watches or back-offs. For another
// API server it requests a reload, after a drain, which the reload would end.
func (a *Agent) followCredentials(ctx context.Context) error {
	return process.Credentials{
		Kubeconfig: a.config.Kubeconfig, Used: a.credentials, Use: a.connection.Use, Reload: a.options.Reload, Interval: a.options.credentialsInterval,
		Busy: func() bool { return a.shutdown.Err() != nil }, Logger: a.log,
	}.Follow(ctx)
}

// identityRetry bounds the pauses between questions who this agent is, until the Node need not wait for the answer any more.
const identityRetry = 2 * time.Second

// identityRefusals is how often the API server may refuse to answer, as it does for a moment after its start, until the Node is registered
// without the answer.
const identityRefusals = 5

// checkIdentity checks the user name of this agent with the API server, once the server responds. Any
// user but the node's is an error that says what to do: another user has too few rights, or far too
// many. No Node is registered before: the kubeconfig of an administrator would make this machine a node of the cluster.
func (a *Agent) checkIdentity(ctx context.Context) error {
	limit, refused := identityRetry, 0
	for wait := identityRetry / 8; ; wait = min(2*wait, limit) {
		review, err := a.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
		switch {
		case err == nil:
			if err := wrongUser(review.Status.UserInfo, a.nodeName); err != nil {
				return fmt.Errorf("kubeconfig %s: %w", a.config.Kubeconfig, err)
			}
			if refused < identityRefusals {
				close(a.identified)
			}
			<-ctx.Done()
			return nil
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsForbidden(err):
			if refused++; refused == identityRefusals {
				a.log.Warn("the API server does not say whose the kubeconfig is", "err", err)
				limit = time.Minute
				close(a.identified)
			}
		}
		if !backoff.Sleep(ctx, wait) {
			return nil
		}
	}
}

// isIdentified reports whether the kubeconfig belongs to the node.
func (a *Agent) isIdentified() bool {
	select {
	case <-a.identified:
		return true
	default:
		return false
	}
}

// keepNode keeps the Node once the kubeconfig is known to belong to the node.
func (a *Agent) keepNode(ctx context.Context) error {
	select {
	case <-a.identified:
		return a.node.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// wrongUser is nil for the user of the node.
func wrongUser(user authentication.UserInfo, node string) error {
	want := "system:node:" + node
	if user.Username != want || !slices.Contains(user.Groups, "system:nodes") {
		return fmt.Errorf("the credentials are of user %q in groups %q; this node needs user %q in group \"system:nodes\": "+
			"give it the kubeconfig of the node, or set nodeName", user.Username, user.Groups, want)
	}
	return nil
}

// shownCertificate returns the current client certificate for the API server; empty without an API
// server.
func (a *Agent) shownCertificate() rest.TLSClientConfig {
	if a.connection == nil {
		return rest.TLSClientConfig{}
	}
	return a.connection.Config().TLSClientConfig
}
