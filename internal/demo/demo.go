package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/eviction"
	"github.com/statusd/statusd/internal/controlplane"
	"github.com/statusd/statusd/internal/freeport"
)

const (
	nodeName  = "local"
	manifests = "examples/pods"
	apiPods   = "examples/pods/api"
	// alertRules are in force beside the starter pack.
	alertRules = "examples/alerts/rules.yaml"
	// stopTimeout is how long each of the three, statusd, containers, control plane, may
	// take to stop.
	stopTimeout = 30 * time.Second
)

// demo is one run of everything.
type demo struct {
	out     io.Writer
	state   string // directory
	statusd string // binary
	rules   bool   // whether alerts are shown
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// running is a node of a cluster, with what it belongs to.
type running struct {
	server *controlplane.Process
	admin  kubernetes.Interface
	daemon *daemon
}

// joined shows a node of a cluster.
func (d *demo) joined(ctx context.Context) error {
	d.rules = true
	return d.inCluster(ctx, func(r running) error {
		d.explainJoined(r.server, r.daemon)
		return d.show(ctx, r.daemon, r.server.Exited(), func(ctx context.Context) ([]v1.Pod, error) {
			list, err := r.admin.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return nil, err
			}
			return list.Items, nil
		})
	})
}

// inCluster starts a control plane and a node with the example pods, calls use, and stops them.
func (d *demo) inCluster(ctx context.Context, use func(running) error) (err error) {
	server, admin, err := d.startControlPlane(ctx, withControllers)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, d.stopControlPlane(ctx, server)) }()
	config, err := d.config("statusd")
	if err != nil {
		return err
	}
	if err := join(&config, server); err != nil {
		return err
	}
	daemon, err := d.startStatusd(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, daemon)) }()
	if err := awaitNode(ctx, admin, daemon); err != nil {
		return unlessInterrupted(ctx, err)
	}
	if err := createPods(ctx, admin, apiPods); err != nil {
		return unlessInterrupted(ctx, err)
	}
	return use(running{server: server, admin: admin, daemon: daemon})
}

// join makes the config that of a node of the cluster.
func join(config *agent.Config, server *controlplane.Process) (err error) {
	if config.Kubeconfig, err = server.NodeKubeconfig(nodeName); err != nil {
		return err
	}
	if config.Manifests, err = filepath.Abs(manifests); err != nil {
		return err
	}
	config.Node.Taints = []string{} // kubectl create deployment makes pods without a toleration
	// The API server dials the address of the node for logs and exec. Nothing here listens beyond loopback.
	config.Node.Addresses = []string{"127.0.0.1"}
	config.Server.BindAddress = "127.0.0.1:0"
	config.Server.ClientCAFile = server.Authority()
	config.Server.RequestCertificate = true
	return nil
}

// standalone shows a node on its own.
func (d *demo) standalone(ctx context.Context) (err error) {
	d.rules = true
	config, err := d.config("standalone")
	if err != nil {
		return err
	}
	if config.Manifests, err = filepath.Abs(manifests); err != nil {
		return err
	}
	daemon, err := d.startStatusd(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, daemon)) }()
	d.explainStandalone(daemon)
	return d.show(ctx, daemon, nil, daemon.pods)
}

// What a control plane is made of. Measurements have no controllers, which would be measured too.
const (
	withControllers    = true
	withoutControllers = false
)

func (d *demo) startControlPlane(ctx context.Context, controllers bool) (*controlplane.Process, kubernetes.Interface, error) {
	if err := d.openState(); err != nil {
		return nil, nil, err
	}
	parts := "a real kube-apiserver with etcd"
	if controllers {
		parts += ", kube-scheduler and kube-controller-manager"
	}
	d.say("starting the control plane (%s, on loopback)", parts)
	server, err := controlplane.Start(ctx, controlplane.Options{
		DataDir: filepath.Join(d.state, "controlplane"), Controllers: controllers, Log: d.out,
	})
	if err != nil {
		return nil, nil, err
	}
	admin, err := kubernetes.NewForConfig(server.AdminConfig())
	if err != nil {
		return nil, nil, errors.Join(err, server.Kill())
	}
	return server, admin, nil
}

// openState makes the directory that everything is kept in. Containers of other users pass through
// it to their volumes; the control plane, which makes what is missing above its own directory,
// would make it for this user alone.
func (d *demo) openState() error {
	if err := os.MkdirAll(d.state, 0o711); err != nil {
		return err
	}
	return os.Chmod(d.state, 0o711)
}

func (d *demo) stopControlPlane(ctx context.Context, server *controlplane.Process) error {
	d.say("stopping the control plane")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return server.Stop(ctx)
}

// config is that of a statusd with its state under this name.
func (d *demo) config(name string) (agent.Config, error) {
	c := agent.Default()
	c.AllowPodsWithoutIsolation = true // the pods of the demo are those of any cluster
	c.NodeName = nodeName
	state, err := filepath.Abs(filepath.Join(d.state, name))
	if err != nil {
		return c, err
	}
	c.StateDir = state
	c.Server.BindAddress = ""             // but where it is shown
	c.Eviction.Hard = eviction.Disabled() // a disk that is nearly full is no reason to show nothing
	if d.rules {
		rules, err := filepath.Abs(alertRules)
		if err != nil {
			return c, err
		}
		c.Rules.Pack, c.Rules.Files = true, []string{rules}
	}
	c.HealthzBindAddress, err = freeAddress()
	return c, err
}

// heldPorts are those of this program, until it ends.
var heldPorts []net.Listener

// freeAddress returns an address with a free port.
func freeAddress() (string, error) {
	port, held, err := freeport.Take()
	if err != nil {
		return "", err
	}
	heldPorts = append(heldPorts, held)
	return fmt.Sprintf("127.0.0.1:%d", port), nil
}

// awaitNode waits until the controllers let pods onto the node. The scheduler tries a pod that it could not
// place only some seconds later.
func awaitNode(ctx context.Context, admin kubernetes.Interface, daemon *daemon) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		node, err := admin.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil && isReady(node) && !slices.ContainsFunc(node.Spec.Taints, isOfLifecycle) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %s does not get ready: %w; see %s", nodeName, ctx.Err(), daemon.logFile)
		case <-daemon.exited:
			return daemon.failure()
		case <-ticker.C:
		}
	}
}

// isOfLifecycle reports whether the taint goes once the node is ready.
func isOfLifecycle(taint v1.Taint) bool {
	return taint.Key == v1.TaintNodeNotReady || taint.Key == v1.TaintNodeUnreachable
}

func isReady(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

// createPods creates the pods of a directory that are not there from an earlier run.
func createPods(ctx context.Context, admin kubernetes.Interface, directory string) error {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var pod v1.Pod
		if err := yaml.UnmarshalStrict(data, &pod); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		_, err = admin.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &pod, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// pods asks statusd itself.
func (d *daemon) pods(ctx context.Context) ([]v1.Pod, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.config.HealthzBindAddress+"/pods", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list v1.PodList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// unlessInterrupted returns the error, or nil if the user interrupted the program.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
