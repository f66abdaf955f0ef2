package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/certs"
	"github.com/statusd/statusd/internal/process"
)

// Bootstrap gets the node its kubeconfig, if the config says how and there is none that can be
// used. It blocks until a certificate is approved and signed, or ctx ends. Call it before [New].
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

// followCredentials uses credentials that have changed from the next request on: no stream, watch or back-off ends with them. For
// another API server it asks for a reload, which would end a drain, and so comes after it.
func (a *Agent) followCredentials(ctx context.Context) error {
	return process.Credentials{
		Kubeconfig: a.config.Kubeconfig, Used: a.credentials, Use: a.connection.Use, Reload: a.options.Reload, Interval: a.options.credentialsInterval,
		Busy: func() bool { return a.shutdown.Err() != nil }, Logger: a.log,
	}.Follow(ctx)
}

// checkIdentity asks the API server, once it answers, whom it takes this agent for. Another user than
// that of the node is an error that says what to do: it could do nothing, or far too much.
func (a *Agent) checkIdentity(ctx context.Context) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		review, err := a.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
		if err == nil {
			if err := wrongUser(review.Status.UserInfo, a.nodeName); err != nil {
				return fmt.Errorf("kubeconfig %s: %w", a.config.Kubeconfig, err)
			}
			<-ctx.Done()
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// wrongUser is nil for the user of the node.
func wrongUser(user authentication.UserInfo, node string) error {
	want := "system:node:" + node
	if user.Username != want || !slices.Contains(user.Groups, "system:nodes") {
		return fmt.Errorf("it is that of user %q in groups %q; this node needs user %q in group \"system:nodes\": "+
			"give it the kubeconfig of the node, or set nodeName", user.Username, user.Groups, want)
	}
	return nil
}

// shownCertificate is what the client shows to the API server now; it is empty without an API server.
func (a *Agent) shownCertificate() rest.TLSClientConfig {
	if a.connection == nil {
		return rest.TLSClientConfig{}
	}
	return a.connection.Config().TLSClientConfig
}
