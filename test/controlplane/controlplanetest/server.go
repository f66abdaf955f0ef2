package controlplanetest

import (
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/controlplane/sharedserver"
	"github.com/statusd/statusd/test/patience"
)

const logLines = 60

// Server is a running API server and clients for it.
type Server struct {
	// Process is the server itself, for what this type does not offer.
	Process *controlplane.Process

	admin kubernetes.Interface
}

// Start starts a server that only this test uses and that ends with it.
func Start(t testing.TB) *Server {
	t.Helper()
	return startFor(t, controlplane.Options{})
}

// StartCluster starts a server as Start does, with kube-scheduler and the controllers that meet a node.
// A node that is silent for longer than grace is unreachable; 0 means the default of kube-controller-manager.
func StartCluster(t testing.TB, grace time.Duration) *Server {
	t.Helper()
	return startFor(t, controlplane.Options{Controllers: true, NodeMonitorGracePeriod: grace})
}

func startFor(t testing.TB, options controlplane.Options) *Server {
	t.Helper()
	server, err := start(t, options)
	if err != nil {
		t.Fatalf("start control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := server.close(); err != nil {
			t.Errorf("end of the test: %v", err)
		}
	})
	server.logIfFailed(t, 0)
	return server
}

func start(t testing.TB, options controlplane.Options) (*Server, error) {
	dir, err := sharedserver.TempDir("controlplane-*")
	if err != nil {
		return nil, err
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	options.DataDir, options.Log = dir, os.Stderr
	process, err := controlplane.Start(ctx, options)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	server, err := newServer(process)
	if err != nil {
		process.Kill()
		os.RemoveAll(dir)
	}
	return server, err
}

func newServer(process *controlplane.Process) (*Server, error) {
	admin, err := kubernetes.NewForConfig(process.AdminConfig())
	if err != nil {
		return nil, err
	}
	return &Server{Process: process, admin: admin}, nil
}

// close ends the server and removes its data. Killing is enough: the data is not used again.
func (s *Server) close() error {
	err := s.Process.Kill()
	if removeErr := os.RemoveAll(s.Process.DataDir()); err == nil {
		err = removeErr
	}
	return err
}

// logIfFailed prints, if the test fails, the end of what the server has logged by then, but nothing
// from before the given offset.
func (s *Server) logIfFailed(t testing.TB, from int) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the control plane's log:\n%s", controlplane.Tail(s.Process.Log()[from:], logLines))
		}
	})
}

// Kill ends the server as kill -9 does.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.Process.Kill(); err != nil {
		t.Fatalf("kill: %v", err)
	}
}

// Restart starts the server again, on the same data and at the same address; it stops it first if it
// runs. Clients made before work on.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	if err := s.Process.Restart(ctx); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

// Admin is a client that may do everything.
func (s *Server) Admin() kubernetes.Interface { return s.admin }

// NodeConfig is the configuration of a client that may do what a kubelet of the node may do. The
// Node object is created if it is missing.
func (s *Server) NodeConfig(t testing.TB, name string) *rest.Config {
	t.Helper()
	s.ensureNode(t, name)
	config, err := s.Process.NodeConfig(name)
	if err != nil {
		t.Fatalf("client of node %s: %v", name, err)
	}
	return config
}

// Node is a client that may do what a kubelet of the node may do. The Node object is created if it
// is missing.
func (s *Server) Node(t testing.TB, name string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.NodeConfig(t, name))
	if err != nil {
		t.Fatalf("client of node %s: %v", name, err)
	}
	return client
}
