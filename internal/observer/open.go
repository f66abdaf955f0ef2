package observer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/internal/process/console"
)

// serviceAccount is where a pod finds the token and the authority of its service account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// nodeName returns the configured name, the name in the environment (from the downward API), or the machine's
// name.
func (c *Config) nodeName() (string, error) {
	if c.NodeName != "" {
		return c.NodeName, nil
	}
	if name := os.Getenv("NODE_NAME"); name != "" {
		if err := process.CheckNodeName(name); err != nil {
			return "", fmt.Errorf("NODE_NAME: %w", err)
		}
		return name, nil
	}
	return process.HostName()
}

// open opens what only one observer at a time can have, and checks the files of the config.
func (o *Observer) open() error {
	if err := o.connect(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.config.StateDir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	var err error
	o.console, err = console.New(console.Options{
		Node: o.node, StateDir: o.config.StateDir, Version: o.options.Version, Healthz: o.config.HealthzBindAddress, Metrics: o.config.MetricsBindAddress,
		Fronts: o.options.Fronts, Registerer: o.registerer, Logger: o.log,
	}, &o.life)
	if err != nil {
		return err
	}
	lock, err := lockState(filepath.Join(o.config.StateDir, lockFile))
	if err != nil {
		return err
	}
	o.life.OnClose(lock)
	o.console.OpenSocket(o.config.QuerySocketPath(), &o.life)
	return nil
}

// lockState keeps a second observer away from the state. The lock ends with the process.
func lockState(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("state directory %s is in use by another observer; stop it, or choose another --state-dir", filepath.Dir(path))
		}
		return nil, fmt.Errorf("state directory: lock %s: %w", path, err)
	}
	return file, nil
}

// connect makes the client of the API server. connect asks nothing.
func (o *Observer) connect() error {
	if o.options.client != nil {
		o.client = o.options.client
		return nil
	}
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // what is written has bounds of its own, and the rest is little
	config.UserAgent = "statusd-observe/" + o.options.Version
	config.Wrap(o.metrics.counted)
	process.LogWarnings(config, o.log)
	if o.connection, err = process.NewConnection(config); err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	o.rest = o.connection.Clients()
	if o.client, err = kubernetes.NewForConfig(o.rest); err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	return nil
}

// restConfig returns the config of the program, of the kubeconfig, of this pod or of the kubelet,
// whichever is first.
func (o *Observer) restConfig() (*rest.Config, error) {
	if o.options.RESTConfig != nil {
		return rest.CopyConfig(o.options.RESTConfig), nil
	}
	if o.config.Kubeconfig == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			// With the contents in place of the file no goroutine of client-go follows it.
			err = rest.LoadTLSFiles(config)
			config.CAFile = ""
			return config, err
		}
		found, ok := o.config.kubeletKubeconfig()
		if !ok {
			return nil, errors.New("no kubeconfig: not running in a pod with a service account, and the kubelet's was not found; set kubeconfig (--kubeconfig)")
		}
		o.config.Kubeconfig = found
	}
	o.credentials = process.KubeconfigDigest(o.config.Kubeconfig)
	return process.LoadKubeconfig(o.config.Kubeconfig)
}

// kubeletKubeconfig finds the kubeconfig of the kubelet. It names its files by their paths on the host, so that
// it cannot be used from a container.
func (c *Config) kubeletKubeconfig() (string, bool) {
	if c.HostRoot != "/" {
		return "", false
	}
	for _, path := range []string{"/etc/kubernetes/kubelet.conf", filepath.Join(c.KubeletRoot, "kubeconfig")} {
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
}

// followCredentials uses credentials that have changed, as when the kubelet has renewed its certificate, from the next request
// on: no watch ends with them. For another API server it asks for a reload.
func (o *Observer) followCredentials(ctx context.Context) error {
	return process.Credentials{
		Kubeconfig: o.config.Kubeconfig, Used: o.credentials, Reload: o.options.Reload, Interval: o.options.credentialsInterval, Logger: o.log,
		Use: func(config *rest.Config) (bool, error) {
			config.Wrap(o.metrics.counted)
			return o.connection.Use(config)
		},
	}.Follow(ctx)
}

// CheckConfig returns all reasons for which [New] would refuse the config: wrong values, and a
// kubeconfig that cannot be used. CheckConfig sends no request.
func CheckConfig(config Config) error {
	if err := config.Validate(); err != nil {
		return err
	}
	if _, err := config.nodeName(); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if config.Kubeconfig != "" {
		if _, err := process.LoadKubeconfig(config.Kubeconfig); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	}
	return config.Rules.Check(&config.Outputs)
}
