package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusd/statusd/bootstrap"
)

// credentialsInterval is how often the files of the kubeconfig are looked at.
const credentialsInterval = 5 * time.Second

// Bootstrap gets the node its kubeconfig, if the config says how and there is none that can be
// used. It blocks until a certificate is approved and signed, or ctx ends. Call it before [New].
func Bootstrap(ctx context.Context, config Config, options Options) error {
	if config.BootstrapKubeconfig == "" {
		return nil
	}
	if err := config.Validate(); err != nil {
		return err
	}
	needed, err := bootstrap.Needed(config.Kubeconfig, time.Now())
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
	return bootstrap.Obtain(ctx, config.bootstrapOptions(name, options))
}

func (c *Config) bootstrapOptions(name string, options Options) bootstrap.Options {
	return bootstrap.Options{
		NodeName: name, Directory: filepath.Join(c.StateDir, pkiDirectory),
		Kubeconfig: c.Kubeconfig, Bootstrap: c.BootstrapKubeconfig, Logger: options.Logger,
	}
}

// loadKubeconfig reads a kubeconfig and the files that it names. It asks no server.
func loadKubeconfig(path string) (*rest.Config, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err == nil {
		// With the contents in place of the files no goroutine of client-go follows them: see
		// followCredentials.
		err = rest.LoadTLSFiles(config)
	}
	if err == nil {
		config.CertFile, config.KeyFile, config.CAFile = "", "", ""
		_, err = rest.TransportFor(config) // certificates and keys that cannot be used show up here
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return config, nil
}

// digest is that of a kubeconfig and of the certificates and keys that it names.
func digest(kubeconfig string) [sha256.Size]byte {
	hash := sha256.New()
	files := []string{kubeconfig}
	if config, err := clientcmd.BuildConfigFromFlags("", kubeconfig); err == nil {
		files = append(files, config.CAFile, config.CertFile, config.KeyFile)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			content = []byte(err.Error())
		}
		part := sha256.Sum256(content)
		hash.Write(part[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// followCredentials asks for a reload when the kubeconfig, its authority or its certificate has
// changed and can be used. Changes that cannot be used are logged, and the old ones stay in force.
func (a *Agent) followCredentials(ctx context.Context) error {
	known := a.credentials
	ticker := time.NewTicker(a.credentialsInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := digest(a.config.Kubeconfig)
		if now == known {
			continue
		}
		known = now
		if now == a.credentials {
			continue // a change that was taken back
		}
		if _, err := loadKubeconfig(a.config.Kubeconfig); err != nil {
			a.log.Error("changed credentials cannot be used, the old ones stay in force", "err", err)
			continue
		}
		if a.options.Reload == nil {
			a.log.Warn("credentials changed; restart to use the new ones", "kubeconfig", a.config.Kubeconfig)
			continue
		}
		a.log.Info("credentials changed, reloading", "kubeconfig", a.config.Kubeconfig)
		a.options.Reload()
	}
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
