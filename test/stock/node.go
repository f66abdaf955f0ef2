package stock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/freeport"
)

// Options say what a node is like. The zero value is a node "stock" with an API server of its own.
type Options struct {
	// Name is the node's name.
	Name string
	// API is the server that the node belongs to; nil: the node starts one, and ends it.
	API *controlplane.Process
	// Controllers and NodeMonitorGracePeriod are for an API server of its own, see [controlplane.Options].
	Controllers            bool
	NodeMonitorGracePeriod time.Duration
	// Program is the kubelet's, in the place of the stock one, which Run builds.
	Program string
	// Statusd is the program statusd: it runs as the node's agent, on the same containerd, in the place of a kubelet.
	Statusd string
	// Network is the pods' network; nil: the host's.
	Network *Network
	// Kubeconfig is the kubelet's, in the place of one with a certificate of the node.
	Kubeconfig string
	// FeatureGates are the kubelet's, as PodsAPI.
	FeatureGates map[string]bool
	// Settings are more lines of the kubelet's configuration, and Args of its command line.
	Settings string
	Args     []string
	// Log receives what takes minutes; nil: nothing is said.
	Log io.Writer
}

// settings keep the kubelet from evicting pods because of the disk and the memory of this machine.
const settings = "evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, imagefs.available: 1Mi}\n"

// Node is a machine with containerd and a kubelet. Its methods are for one goroutine.
type Node struct {
	Name       string
	API        *controlplane.Process
	Containerd *Containerd
	Kubelet    *Kubelet

	dir        string
	group      string
	namespaces *namespaces
	ports      []net.Listener
	ownAPI     bool
	statusd    string // its configuration, on a node of statusd
	admin      kubernetes.Interface
}

// Start runs a node for a test, which skips or fails if the machine cannot have one. The node is Ready,
// and ends with the test. If the test fails, the ends of the node's logs are part of its output.
func Start(t *testing.T, o Options) *Node {
	t.Helper()
	Need(t)
	if o.Log == nil {
		o.Log = os.Stderr
	}
	n, err := Run(Context(t), o)
	if err != nil {
		t.Fatalf("start a node of the stock kubelet: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.Tail(40))
		}
		if err := n.Close(); err != nil {
			t.Errorf("end of the node: %v", err)
		}
	})
	return n
}

// Run starts a node and returns when it is Ready. Close it, also if ctx has ended.
func Run(ctx context.Context, o Options) (*Node, error) {
	binary := o.Program
	if o.Statusd != "" {
		binary = o.Statusd
	}
	if binary == "" {
		var err error
		if binary, err = BuildKubelet(ctx, orDiscard(o.Log)); err != nil {
			return nil, err
		}
	}
	n := &Node{Name: o.Name, API: o.API, ownAPI: o.API == nil}
	if n.Name == "" {
		n.Name = "stock"
	}
	if err := n.run(ctx, o, binary); err != nil {
		err = fmt.Errorf("%w\n%s", err, n.Tail(20))
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func (n *Node) run(ctx context.Context, o Options, binary string) error {
	if err := n.prepare(binary); err != nil {
		return err
	}
	if n.API == nil {
		var err error
		n.API, err = controlplane.Start(ctx, controlplane.Options{
			DataDir: filepath.Join(n.dir, "api"), Log: o.Log,
			Controllers: o.Controllers, NodeMonitorGracePeriod: o.NodeMonitorGracePeriod,
		})
		if err != nil {
			return err
		}
	}
	if err := n.configure(o); err != nil {
		return err
	}
	if err := n.Containerd.Start(ctx); err != nil {
		return err
	}
	if o.Statusd != "" {
		if err := n.startStatusd(o); err != nil {
			return err
		}
	} else if err := n.Kubelet.Start(); err != nil {
		return err
	}
	return n.Ready(ctx)
}

// prepare makes what belongs to this node alone: directory, control groups and namespaces.
func (n *Node) prepare(binary string) error {
	var err error
	if n.dir, err = os.MkdirTemp("", "stock-"); err != nil {
		return err
	}
	if err := os.Chmod(n.dir, 0o711); err != nil { // containers with other users get through
		return err
	}
	if err := os.MkdirAll(filepath.Join(n.dir, "bin"), 0o755); err != nil {
		return err
	}
	// The name of a process is that of its file.
	if err := os.Symlink(binary, filepath.Join(n.dir, "bin", "kubelet")); err != nil {
		return err
	}
	n.group = filepath.Base(n.dir)
	if err := makeGroups(n.group); err != nil {
		return err
	}
	n.namespaces, err = newNamespaces()
	return err
}

func (n *Node) configure(o Options) error {
	var err error
	if n.admin, err = kubernetes.NewForConfig(n.API.AdminConfig()); err != nil {
		return err
	}
	kubeconfig := o.Kubeconfig
	if kubeconfig == "" {
		if kubeconfig, err = n.API.NodeKubeconfig(n.Name); err != nil {
			return err
		}
	}
	n.Containerd = &Containerd{Dir: n.dir, Launch: n.Start, Network: o.Network}
	n.Kubelet = &Kubelet{
		Dir: n.dir, Launch: n.Start, Binary: filepath.Join(n.dir, "bin", "kubelet"), NodeName: n.Name, Kubeconfig: kubeconfig,
		Authority: n.API.Authority(), Group: "/" + n.group, FeatureGates: o.FeatureGates, Settings: settings + o.Settings, Args: o.Args,
	}
	if o.Network != nil {
		certificate, key, err := n.servingFiles(o.Network.Address)
		if err != nil {
			return err
		}
		n.Kubelet.Host, n.Kubelet.Port = o.Network.Address, o.Network.Port
		n.Kubelet.Settings += "tlsCertFile: " + certificate + "\ntlsPrivateKeyFile: " + key + "\n"
		n.Kubelet.Args = append([]string{"--node-ip", o.Network.Address}, n.Kubelet.Args...)
	}
	if n.Kubelet.Port == 0 {
		if n.Kubelet.Port, err = n.Port(); err != nil {
			return err
		}
	}
	n.Kubelet.HealthzPort, err = n.Port()
	return err
}

// Port is a free one of the loopback interface, for this node until it is closed.
func (n *Node) Port() (int, error) {
	number, held, err := freeport.Take()
	if err == nil {
		n.ports = append(n.ports, held)
	}
	return number, err
}

// Start runs a program on the node: in its namespaces, with the node's processes and mounts. Its output is
// appended to NAME.log in Dir. The process ends with the node.
func (n *Node) Start(name, program string, args ...string) (*Process, error) {
	return n.StartWith(nil, name, program, args...)
}

// StartWith runs a program as Start does, with more variables in its environment.
func (n *Node) StartWith(env []string, name, program string, args ...string) (*Process, error) {
	return start(n.namespaces, n.dir, env, name, program, args...)
}

// Ready returns when the API says that the node is ready.
func (n *Node) Ready(ctx context.Context) error {
	return Await(ctx, func() error {
		if n.Kubelet.Process().Over() {
			return fmt.Errorf("kubelet: %w, see %s", campaign.ErrEnded, n.Kubelet.Process().Log())
		}
		node, err := n.admin.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the node is not ready")
	})
}

// Admin is a client that may do everything.
func (n *Node) Admin() kubernetes.Interface { return n.admin }

// Dir is the node's directory.
func (n *Node) Dir() string { return n.dir }

// Manifests is the directory of static pods.
func (n *Node) Manifests() string { return filepath.Join(n.dir, "manifests") }

// Group is the control group of the node, relative to the root of each hierarchy: the kubelet makes kubepods in it.
func (n *Node) Group() string { return "/" + n.group }

// Root is the node's file tree, with the mounts that the kubelet and containerd make: Root()+"/proc" has its
// processes, and Root()+Kubelet.Root() the volumes of pods.
func (n *Node) Root() string { return fmt.Sprintf("/proc/%d/root", n.namespaces.init.PID()) }

// Tail is the ends of the logs of the node's programs.
func (n *Node) Tail(lines int) string {
	files, _ := filepath.Glob(filepath.Join(n.dir, "*.log"))
	var text string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		text += fmt.Sprintf("end of %s:\n%s", filepath.Base(file), controlplane.Tail(string(content), lines))
	}
	return text
}

// Close ends all processes of the node and removes its files.
func (n *Node) Close() error {
	if n.namespaces != nil {
		n.namespaces.close()
	}
	var errs []error
	if n.ownAPI && n.API != nil {
		errs = append(errs, n.API.Kill())
	}
	for _, held := range n.ports {
		errs = append(errs, held.Close())
	}
	if n.group != "" {
		errs = append(errs, RemoveGroups(n.group))
	}
	if n.dir != "" {
		errs = append(errs, os.RemoveAll(n.dir))
	}
	return errors.Join(errs...)
}
