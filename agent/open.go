package agent

import (
	"crypto/sha256"
	"encoding/hex"
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

	"github.com/statusd/statusd/internal/node/volume/apiobjects"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/node"
)

// Files and directories in the state directory.
const (
	journalFile      = "journal.db"
	runtimeDirectory = "runtime"
	pkiDirectory     = "pki"
	cordonFile       = "cordoned" // see node.Memory
)

// stateDirMode lets containers of other users traverse the directory to their files, but not list
// it.
const stateDirMode = 0o711

// open opens the resources that only one agent at a time can use, and checks the files of the
// config.
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
	a.life.OnClose(closerFunc(a.closeOrLeave))
	if err := a.openServer(); err != nil {
		return err
	}
	return a.openState()
}

// readableManifests returns an error for a directory that cannot be read. A missing directory may
// appear later.
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

// connect creates the client of the API server. connect sends no requests.
func (a *Agent) connect() error {
	config, err := a.restConfig()
	if config == nil || err != nil {
		return err
	}
	config.QPS = -1 // the status manager has its own limit, and the rest is little
	config.UserAgent = "statusd/" + a.options.Version
	config.ContentType = serializers.ContentTypeProtobuf
	config.AcceptContentTypes = serializers.ContentTypeProtobuf + "," + serializers.ContentTypeJSON
	process.LogWarnings(config, a.log)
	a.apiServer = serverAddress(config)
	if a.connection, err = process.NewConnection(config); err != nil {
		return fmt.Errorf("agent: client of the API server: %w", err)
	}
	client, err := kubernetes.NewForConfig(a.connection.Clients())
	if err != nil {
		return fmt.Errorf("agent: client of the API server: %w", err)
	}
	a.client, a.objects = client, apiobjects.New(client, a.log)
	return nil
}

// restConfig returns the config of the program, else of the kubeconfig, or nil without either.
func (a *Agent) restConfig() (*rest.Config, error) {
	if a.options.RESTConfig != nil {
		return rest.CopyConfig(a.options.RESTConfig), nil
	}
	if a.config.Kubeconfig == "" {
		return nil, nil
	}
	a.credentials = process.KubeconfigDigest(a.config.Kubeconfig)
	config, err := process.LoadKubeconfig(a.config.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return config, nil
}

// serverAddress is the host and port of the API server, empty if more is needed to reach it, such
// as a path.
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

// listen binds the address of the endpoints.
func (a *Agent) listen() (err error) {
	fronts := a.options.Memory.Fronts()
	if err := fronts.Keep(a.config.HealthzBindAddress); err != nil {
		a.log.Warn("address of the former config did not close in order", "err", err)
	}
	if a.front, err = fronts.Listen(a.config.HealthzBindAddress, "healthz-bind-address"); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if a.front != nil {
		a.life.OnClose(a.front)
	}
	return nil
}

func (a *Agent) openState() error {
	if err := a.openRuntime(); err != nil {
		return fmt.Errorf("agent: runtime: %w", err)
	}
	a.logs = newLastLogs(a.runtime)
	opened, err := journal.Open(filepath.Join(a.config.StateDir, journalFile), journal.Options{NodeName: a.nodeName, Logger: a.log})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a.journal = opened
	a.life.OnClose(opened)
	return a.claimState()
}

// openRuntime takes the runtime of the program, or creates it.
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
		services.Objects, services.Client = a.objects, a.client
	}
	left := &a.options.Memory.left
	if left.runtime != nil && a.options.Successor != nil && left.stateDir == a.config.StateDir {
		former := left.runtime
		left.runtime = nil
		a.runtime, err = a.options.Successor(former, services)
		return err
	}
	if err := a.options.Memory.closeRuntime(); err != nil {
		return err
	}
	a.runtime, err = a.options.NewRuntime(services)
	return err
}

// nodeOptions returns the options of the node that come from the config.
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

// instance names this agent among those of other machines and of other state directories, as MACHINE:DIRECTORY.
func (a *Agent) instance() string {
	dir, err := filepath.Abs(a.config.StateDir)
	if err != nil {
		dir = a.config.StateDir
	}
	here := a.machine.latest()
	sum := sha256.Sum256([]byte(here.MachineID + "\n" + here.SystemUUID))
	return hex.EncodeToString(sum[:8]) + ":" + dir
}

// instanceEnded reports whether an instance of this machine does not run any more.
func (a *Agent) instanceEnded(instance string) bool {
	machine, dir, ok := strings.Cut(instance, ":")
	own, _, _ := strings.Cut(a.instance(), ":")
	return ok && machine == own && filepath.IsAbs(dir) && !journal.InUse(filepath.Join(dir, journalFile))
}
