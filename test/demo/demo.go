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

	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/freeport"
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

	// build builds the control plane unless it is built.
	built func() bool
	build func(context.Context, io.Writer) (string, error)
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// running is a node of a cluster, with its dependencies.
type running struct {
	server *controlplane.Process
	admin  kubernetes.Interface
	daemon *daemon
}

// joined shows a node of a cluster. The first time the control plane must be built, which takes minutes: until then it shows
// the node on its own.
func (d *demo) joined(ctx context.Context) (err error) {
	d.rules = true
	var alone *daemon
	if !d.built() {
		if alone, err = d.whileBuilding(ctx); err != nil || alone == nil {
			return err
		}
	}
	return d.inCluster(ctx, alone, func(r running) error {
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

// inCluster starts a control plane and a node with the example pods, calls use, and stops them. A node that runs on its own
// joins the cluster: it is started again, and its containers run on.
func (d *demo) inCluster(ctx context.Context, alone *daemon, use func(running) error) (err error) {
	stop := func() error { return nil }
	if alone != nil {
		stop = func() error { return d.stopStatusd(ctx, alone) }
	}
	server, admin, err := d.startControlPlane(ctx, withControllers)
	if err != nil {
		return errors.Join(unlessInterrupted(ctx, err), stop())
	}
	defer func() { err = errors.Join(err, d.stopControlPlane(ctx, server)) }()
	config, err := d.config("statusd")
	if err == nil {
		err = join(&config, server)
	}
	if err != nil {
		return errors.Join(err, stop())
	}
	if alone != nil {
		config.HealthzBindAddress = alone.config.HealthzBindAddress // the page stays where it is
		d.say("joining the cluster: statusd starts again with credentials, its containers run on")
		if err := alone.stop(context.WithoutCancel(ctx)); err != nil {
			return err
		}
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

// join makes the config fit a node of the cluster.
func join(config *run.Config, server *controlplane.Process) (err error) {
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
	daemon, err := d.startAlone("standalone")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, daemon)) }()
	d.explainStandalone(daemon)
	return d.show(ctx, daemon, nil, daemon.pods)
}

// startAlone starts a node on its own, with its state under this name.
func (d *demo) startAlone(name string) (*daemon, error) {
	config, err := d.config(name)
	if err != nil {
		return nil, err
	}
	if config.Manifests, err = filepath.Abs(manifests); err != nil {
		return nil, err
	}
	return d.startStatusd(config)
}

// whileBuilding shows a node on its own until the control plane is built, and returns the node. whileBuilding returns nil if the user
// interrupts it.
func (d *demo) whileBuilding(ctx context.Context) (*daemon, error) {
	daemon, err := d.startAlone("statusd")
	if err != nil {
		return nil, err
	}
	d.explainStandalone(daemon)
	d.say("Meanwhile a control plane is built, which the node then joins.")
	showing, done := context.WithCancel(ctx)
	defer done()
	building := make(chan error, 1)
	go func() {
		_, err := d.build(showing, d.out)
		building <- err
		done()
	}()
	err = d.show(showing, daemon, nil, daemon.pods)
	done()
	if built := <-building; err == nil && ctx.Err() == nil {
		err = built
	}
	if err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, d.stopStatusd(ctx, daemon))
	}
	return daemon, nil
}

// Arguments of a control plane. Measurements run without controllers, which would be measured too.
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

// openState makes the directory of all state. Containers of other users pass through it to their
// volumes; the control plane, which creates missing parents of its own directory, would create it
// for this user alone.
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

// config is the configuration of a statusd with its state under this name.
func (d *demo) config(name string) (run.Config, error) {
	c := run.Default()
	c.AllowPodsWithoutIsolation = true // any cluster could have the pods of the demo
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

// heldPorts are the ports that this program holds until it ends.
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
	return daemon.await(ctx, func() error {
		node, err := admin.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil && (!isReady(node) || slices.ContainsFunc(node.Spec.Taints, isOfLifecycle)) {
			err = fmt.Errorf("node %s does not get ready; see %s", nodeName, daemon.logFile)
		}
		return err
	})
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
