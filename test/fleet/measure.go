package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
)

// prefix is what the names of the nodes begin with.
const prefix = "fleet-"

// result is the measurement of a contender.
type result struct {
	name                            string
	pods                            int
	registered, ready, deleted      time.Duration
	readyCPU, idleCPU, longestLease time.Duration
	requestsPerPod, idleRequests    float64
	renewals                        float64
	heapPerNode, heapPerPod         float64
	rss                             int64
	flaps                           string
	longestBusyLease                time.Duration // during the deletions
	deleteCPU, deleteServerCPU      time.Duration
	deleteRequests                  string // per pod, by verb
}

// measure measures one contender on an API server of its own.
func (p *plan) measure(ctx context.Context, name string) (*result, error) {
	dir, err := os.MkdirTemp("", "fleet-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	server, err := controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(dir, "server"), Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	config := server.AdminConfig()
	config.QPS, config.ContentType = -1, runtime.ContentTypeProtobuf // the measurement runs on the same processors
	m := &measurement{plan: p, client: kubernetes.NewForConfigOrDie(config), config: config, dir: dir, kubeconfig: server.AdminKubeconfig(),
		result: &result{name: name, pods: p.nodes * p.pods}}
	return m.result, m.run(ctx)
}

type measurement struct {
	*plan
	*result
	client          kubernetes.Interface
	config          *rest.Config
	dir, kubeconfig string
	c               *contender
	baseline        float64 // requests per second of the server by itself
	seen            *seen
	continued       time.Time // when the contender went on after it was stopped
}

func (m *measurement) run(ctx context.Context) error {
	for _, namespace := range []string{"steady", "flapping"} {
		object := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := m.client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
		account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}}
		if _, err := m.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if m.seen, err = m.watch(watching); err != nil {
		return err
	}
	if m.baseline, err = m.requestsPerSecond(ctx, 10*time.Second, all); err != nil {
		return err
	}
	steps := []func(context.Context) error{m.register, m.readyPods, m.idlePhase, m.flapPhase, m.deleteAll}
	if m.keep {
		steps = steps[:len(steps)-1]
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			if m.c != nil {
				m.c.stop()
				said, _ := os.ReadFile(m.c.log.Name()) // what it said is only an explanation
				err = fmt.Errorf("%w\n%s", err, said[max(0, len(said)-4000):])
			}
			return err
		}
	}
	m.c.stop()
	return nil
}

// register starts the contender and waits until all Nodes are Ready.
func (m *measurement) register(ctx context.Context) (err error) {
	began := time.Now()
	if m.name == "kwok" {
		if err := m.parallel(ctx, m.nodes, m.createNode); err != nil {
			return err
		}
		args := []string{"--kubeconfig", m.kubeconfig, "--manage-all-nodes", "--node-lease-duration-seconds", "40", "-v", "WARN"}
		for _, stages := range []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"} {
			files, err := filepath.Glob(filepath.Join(m.stages, stages, "*.yaml"))
			if err != nil {
				return err
			}
			for _, file := range files {
				if filepath.Base(file) != "kustomization.yaml" {
					args = append(args, "--config", file)
				}
			}
		}
		m.c, err = start(m.dir, m.kwok, args...)
	} else {
		var self string
		if self, err = os.Executable(); err == nil {
			m.c, err = start(m.dir, self, "nodes", m.kubeconfig, strconv.Itoa(m.nodes))
		}
	}
	if err != nil {
		return err
	}
	err = campaign.Await(ctx, 500*time.Millisecond, func() error {
		nodes, err := m.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := 0
		for i := range nodes.Items {
			for _, c := range nodes.Items[i].Status.Conditions {
				if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
					ready++
				}
			}
		}
		if ready < m.nodes {
			return fmt.Errorf("%d of %d nodes are Ready", ready, m.nodes)
		}
		return nil
	})
	m.registered = time.Since(began)
	fmt.Printf("%s: %d nodes Ready after %v\n", m.name, m.nodes, m.registered.Round(time.Millisecond))
	return err
}

func (m *measurement) createNode(ctx context.Context, i int) error {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(prefix, i)}}
	_, err := m.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// readyPods creates the pods while the contender is stopped, and measures from its continuation until all are Ready.
func (m *measurement) readyPods(ctx context.Context) error {
	before, none, err := m.heapWithoutPods(ctx)
	if err != nil {
		return err
	}
	_ = m.c.command.Process.Signal(syscall.SIGSTOP)
	began := time.Now()
	if err := m.parallel(ctx, m.result.pods, m.createPod); err != nil {
		return err
	}
	fmt.Printf("%s: %d pods created in %v\n", m.name, m.result.pods, time.Since(began).Round(time.Millisecond))
	requests, err := m.count(ctx, ofPods)
	if err != nil {
		return err
	}
	cpu := m.c.cpu()
	m.continued = time.Now()
	_ = m.c.command.Process.Signal(syscall.SIGCONT)
	if err := campaign.Await(ctx, 20*time.Millisecond, func() error {
		if n, _ := m.seen.count(); n < m.result.pods {
			return fmt.Errorf("%d of %d pods are Ready", n, m.result.pods)
		}
		return nil
	}); err != nil {
		return err
	}
	m.ready, m.readyCPU = time.Since(m.continued), m.c.cpu()-cpu
	after, err := m.count(ctx, ofPods)
	if err != nil {
		return err
	}
	m.requestsPerPod = (after - requests) / float64(m.result.pods)
	fmt.Printf("%s: %d pods Ready in %v\n", m.name, m.result.pods, m.ready.Round(time.Millisecond))
	return m.memory(ctx, before, none)
}

// heapWithoutPods is the heap of the contender with nodes alone, and that of a program with an informer of no pods.
func (m *measurement) heapWithoutPods(ctx context.Context) (nodes, none float64, err error) {
	if m.name == "kwok" {
		return 0, 0, nil
	}
	informer, err := m.informer(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	defer informer.stop()
	return m.c.heap(), informer.heap(), nil
}

// informer starts a program that has nothing but an informer, and waits until it has the pods.
func (m *measurement) informer(ctx context.Context, pods int) (*contender, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	informer, err := start(m.dir, self, "informer", m.kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := campaign.Await(ctx, 500*time.Millisecond, func() error {
		if n := informer.ask("pods"); n != strconv.Itoa(pods) {
			return fmt.Errorf("the informer has %s pods", n)
		}
		return nil
	}); err != nil {
		informer.stop()
		return nil, err
	}
	return informer, campaign.Pause(ctx, 2*time.Second)
}

// memory compares the heap with that of a program that has nothing but the pods.
func (m *measurement) memory(ctx context.Context, before, none float64) error {
	if m.name == "kwok" {
		return nil
	}
	informer, err := m.informer(ctx, m.result.pods)
	if err != nil {
		return err
	}
	defer informer.stop()
	pods, full := informer.heap()-none, m.c.heap()
	m.heapPerNode = (before - none) / float64(m.nodes)
	m.heapPerPod = (full - before - pods) / float64(m.result.pods)
	fmt.Printf("%s: heap %.1f MiB with nodes alone, %.1f MiB with pods; an informer of the pods %.1f MiB beyond %.1f without\n",
		m.name, before/(1<<20), full/(1<<20), pods/(1<<20), none/(1<<20))
	return nil
}

// isFlapping reports whether a pod is one of the 5 % that flap.
func (m *measurement) isFlapping(i int) bool { return (i/m.nodes+i%m.nodes)%20 == 0 }

func (m *measurement) createPod(ctx context.Context, i int) error {
	token := false
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "steady", Name: fmt.Sprint("pod-", i), Labels: map[string]string{"app": "web", "pod-template-hash": "5d9c8b7f6"}},
		Spec: v1.PodSpec{
			NodeName: fmt.Sprint(prefix, i%m.nodes), AutomountServiceAccountToken: &token,
			Containers: []v1.Container{{Name: "main", Image: "registry.example/web:1.0", Env: []v1.EnvVar{{Name: "MODE", Value: "production"}}}},
		},
	}
	if m.isFlapping(i) {
		pod.Namespace = "flapping"
	}
	_, err := m.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// parallel does something for each number, some at a time.
func (m *measurement) parallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	var next atomic.Int64
	var working sync.WaitGroup
	errs := make(chan error, 32)
	for range cap(errs) {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	working.Wait()
	close(errs)
	return errors.Join(<-errs)
}
