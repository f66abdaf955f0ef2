package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	serializers "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/volume/apiobjects"
)

// What lies in the state directory.
const (
	journalFile      = "journal.db"
	runtimeDirectory = "runtime"
	pkiDirectory     = "pki"
)

// stateDirMode lets containers of other users pass through to what is theirs, and list nothing.
const stateDirMode = 0o711

// open opens what only one agent at a time can have, and checks the files of the config.
func (a *Agent) open() error {
	if err := readableManifests(a.config.Manifests); err != nil {
		return err
	}
	if err := a.connect(); err != nil {
		return err
	}
	if err := os.MkdirAll(a.config.StateDir, stateDirMode); err != nil {
		return fmt.Errorf("agent: state directory: %w", err)
	}
	if _, err := a.machine.look(); err != nil {
		return fmt.Errorf("agent: look at the machine: %w", err)
	}
	if err := a.listen(); err != nil {
		return err
	}
	if err := a.openServer(); err != nil {
		return err
	}
	if err := a.openState(); err != nil {
		return err
	}
	a.openSockets() // after the state, whose lock says that no other agent has them
	return nil
}

// readableManifests finds a directory that can never be read. One that is missing may come.
func readableManifests(directory string) error {
	if directory == "" {
		return nil
	}
	_, err := os.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("agent: manifests: %w", err)
	}
	return nil
}

// connect makes the client of the API server. It asks nothing.
func (a *Agent) connect() error {
	config, err := a.restConfig()
	if config == nil || err != nil {
		return err
	}
	config.QPS = -1 // the status manager has its own limit, and the rest is little
	config.UserAgent = "statusd/" + a.options.Version
	config.ContentType = serializers.ContentTypeProtobuf
	config.AcceptContentTypes = serializers.ContentTypeProtobuf + "," + serializers.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("agent: client of the API server: %w", err)
	}
	a.client, a.certificate = client, config.TLSClientConfig
	a.objects = apiobjects.New(client, a.log)
	a.apiServer = serverAddress(config)
	return nil
}

// restConfig is that of the program or else that of the kubeconfig, nil if there is neither.
func (a *Agent) restConfig() (*rest.Config, error) {
	if a.options.RESTConfig != nil {
		return rest.CopyConfig(a.options.RESTConfig), nil
	}
	if a.config.Kubeconfig == "" {
		return nil, nil
	}
	a.credentials = daemon.KubeconfigDigest(a.config.Kubeconfig)
	config, err := daemon.LoadKubeconfig(a.config.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return config, nil
}

// serverAddress is the host and port of the API server, empty if it is not reached by them
// alone, as behind a path.
func serverAddress(config *rest.Config) string {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil || server.Scheme != "https" || strings.Trim(server.Path, "/") != "" {
		return ""
	}
	port := server.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(server.Hostname(), port)
}

func (a *Agent) listen() error {
	if a.config.HealthzBindAddress == "" {
		return nil
	}
	listener, err := daemon.Listen(a.config.HealthzBindAddress)
	if err != nil {
		return fmt.Errorf("agent: endpoints: %w; choose another --healthz-bind-address, or port 0 for a free one", err)
	}
	a.listener = listener
	return nil
}

func (a *Agent) openState() error {
	if err := a.openRuntime(); err != nil {
		return fmt.Errorf("agent: runtime: %w", err)
	}
	opened, err := journal.Open(filepath.Join(a.config.StateDir, journalFile), journal.Options{NodeName: a.nodeName, Logger: a.log})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a.journal = opened
	return a.claimState()
}

// openRuntime takes the runtime that the program has, or has it made.
func (a *Agent) openRuntime() (err error) {
	if a.options.Runtime != nil {
		a.runtime = a.options.Runtime
		return nil
	}
	services := NodeServices{
		Dir:         a.config.RuntimeDir(),
		Version:     a.options.Version,
		Addresses:   a.addresses,
		Allocatable: a.allocatable,
		APIServer:   a.apiServer,
		Logger:      a.log,
		Event: func(pod *v1.Pod, container, eventType, reason, message string) {
			a.events.Event(pod, container, eventType, reason, message) // made after the runtime
		},
	}
	if a.objects != nil {
		services.Objects = a.objects
	}
	a.runtime, err = a.options.NewRuntime(services)
	return err
}

// nodeOptions are those that the config decides about.
func (a *Agent) nodeOptions() node.Options {
	return node.Options{
		Client:    a.client,
		Name:      a.nodeName,
		Labels:    a.config.Node.Labels,
		Taints:    a.config.Node.taints(),
		Addresses: a.config.Node.Addresses,
		MaxPods:   a.config.Node.MaxPods,
		Reserved:  a.config.Node.reserved(),
		Version:   a.options.Version,
		Read:      a.machine.look,
		Ready:     a.notReady,
		Port:      a.serverPort(),
		Lease:     a.options.lease,

		Thresholds: a.thresholds(),
		Logger:     a.log,
	}
}
