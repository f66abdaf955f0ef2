package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/stock"
)

const (
	// creators is how many pods are created or deleted at a time.
	creators = 16
	// atRest is how long the CPU of the kubelet is measured while its pods do nothing.
	atRest = 15 * time.Second
)

// dense is the measurement of many pods without containers.
type dense struct {
	agent, limits   string
	pods            int
	ready, lost     []time.Duration // created → Ready seen, probe failed → Ready lost seen
	requests, total int             // about statuses, until all pods are ready and until all are gone
	cpu, resting    float64         // seconds until all pods are ready, percent of one CPU at rest
	resident        float64         // MiB
	gone            time.Duration
}

const densityHead = `| limits | pods | kubelet | created → Ready seen, p50 | p99 | probe failed → Ready lost seen, median of 10 | slowest | requests per pod: start | life | CPU s per 1,000 pods started | CPU % at rest | MiB | all deleted → gone |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
`

func (d dense) String() string {
	ms := func(times []time.Duration, p int) time.Duration {
		return campaign.Percentile(times, p).Round(time.Millisecond)
	}
	lives := float64(d.pods + probed)
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s | %.2f | %.2f | %.1f | %.0f | %.0f | %.1f s |\n", d.limits, d.pods, d.agent,
		ms(d.ready, 50), ms(d.ready, 99), ms(d.lost, 50), ms(d.lost, 100), float64(d.requests)/lives, float64(d.total)/lives,
		1000*d.cpu/lives, d.resting, d.resident, d.gone.Seconds())
}

// startHollow starts a kubelet with a runtime of its own that only pretends to run containers, and returns where its metrics are.
func (a agent) startHollow(dir, name, kubeconfig string, pods, qps, burst int) (*stock.Process, string, error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	readOnly, err := freePort()
	if err != nil {
		return nil, "", err
	}
	p, err := stock.Launch(dir, []string{"TMPDIR=" + dir}, name, a.hollow, "--morph=kubelet", "--name="+name, "--kubeconfig="+kubeconfig,
		fmt.Sprintf("--kubelet-port=%d", port), fmt.Sprintf("--kubelet-read-only-port=%d", readOnly), fmt.Sprintf("--max-pods=%d", pods),
		fmt.Sprintf("--kube-api-qps=%d", qps), fmt.Sprintf("--kube-api-burst=%d", burst), "--use-host-image-service=false")
	return p, fmt.Sprintf("http://127.0.0.1:%d/metrics", readOnly), err
}

func measureDensity(ctx context.Context, api *controlplane.Process, dir string, a agent, limit string, pods int) (d dense, err error) {
	setting, ok := limitsOf[limit]
	if !ok {
		return d, fmt.Errorf("there is no setting %q", limit)
	}
	d = dense{agent: a.name, limits: limit, pods: pods}
	name := fmt.Sprintf("hollow-%s-%s-%d", a.name, limit, pods)
	between, err := newProxy(api, name, setting.delay)
	if err != nil {
		return d, err
	}
	defer between.close()
	kubeconfig := filepath.Join(dir, name+".kubeconfig")
	if err := between.writeKubeconfig(kubeconfig); err != nil {
		return d, err
	}
	admin, err := kubernetes.NewForConfig(api.AdminConfig())
	if err != nil {
		return d, err
	}
	kubelet, metrics, err := a.startHollow(dir, name, kubeconfig, pods+probed, setting.qps, setting.burst)
	if err != nil {
		return d, err
	}
	defer func() {
		kubelet.Kill()
		err = errors.Join(err, admin.CoreV1().Nodes().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}))
	}()
	seen, err := watchPods(ctx, admin)
	if err != nil {
		return d, err
	}
	answers, err := listenForProbes()
	if err != nil {
		return d, err
	}
	defer answers.close()
	c := &crowd{admin: admin, node: name, pods: pods, metrics: metrics, between: between, answers: answers}
	if err := c.run(ctx, seen, &d); err != nil {
		return d, fmt.Errorf("%w, see %s", err, kubelet.Log())
	}
	return d, nil
}

// crowd is a start of many pods at once on a node without containers.
type crowd struct {
	admin   kubernetes.Interface
	node    string
	pods    int
	metrics string
	between *proxy
	answers *answers
}

func (c *crowd) pod(name string) *v1.Pod {
	grace, token := int64(30), false // the fake runtime stops containers at once
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: v1.PodSpec{
			NodeName: c.node, TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &token,
			Containers: []v1.Container{{Name: "main", Image: "example.com/pretended:1"}},
		},
	}
}

func (c *crowd) create(ctx context.Context, pod *v1.Pod) error {
	return stock.Await(ctx, func() error {
		_, err := c.admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

func (c *crowd) run(ctx context.Context, seen <-chan sight, d *dense) error {
	if err := c.startProbed(ctx, seen); err != nil {
		return err
	}
	before, err := campaign.Scrape(ctx, c.metrics)
	if err != nil {
		return err
	}
	if err := c.start(ctx, seen, d); err != nil {
		return err
	}
	for _, n := range c.between.taken() {
		d.requests += n
	}
	started, err := campaign.Scrape(ctx, c.metrics)
	if err != nil {
		return err
	}
	if err := campaign.Pause(ctx, atRest); err != nil {
		return err
	}
	rested, err := campaign.Scrape(ctx, c.metrics)
	if err != nil {
		return err
	}
	const cpu = "process_cpu_seconds_total"
	d.cpu, d.resting = started[cpu]-before[cpu], 100*(rested[cpu]-started[cpu])/atRest.Seconds()
	d.resident = rested["process_resident_memory_bytes"] / (1 << 20)
	if d.gone, err = clearPods(ctx, c.admin, seen, c.pods+probed); err != nil {
		return err
	}
	d.total = d.requests
	for _, n := range c.between.taken() {
		d.total += n
	}
	return nil
}

func (c *crowd) startProbed(ctx context.Context, seen <-chan sight) error {
	for i := range probed {
		pod := c.pod(probedName(i))
		pod.Spec.Containers[0].ReadinessProbe = c.answers.probe(pod.Name)
		if err := c.create(ctx, pod); err != nil {
			return err
		}
	}
	return awaitProbed(ctx, seen)
}

// start creates the pods, lets the probes fail one after the other while the pods start, and waits until all of it was seen.
func (c *crowd) start(ctx context.Context, seen <-chan sight, d *dense) error {
	c.between.taken()
	created := c.createAll(ctx)
	ready, lost, err := c.answers.awaitStart(ctx, seen, c.pods, d.agent+" "+d.limits)
	times := created()
	if err := errors.Join(err, times.failed); err != nil {
		return err
	}
	for name, at := range ready {
		d.ready = append(d.ready, at.Sub(times.at[name]))
	}
	d.lost = lost
	return nil
}

// created is when pods were created.
type created struct {
	at     map[string]time.Time
	failed error
}

// createAll creates the pods, several at a time. The function that it returns waits until they are created.
func (c *crowd) createAll(ctx context.Context) func() created {
	var mu sync.Mutex
	result := created{at: map[string]time.Time{}}
	done := inParallel(c.pods, func(i int) {
		name, at := fmt.Sprintf("pod-%d", i), time.Now()
		err := c.create(ctx, c.pod(name))
		mu.Lock()
		defer mu.Unlock()
		result.at[name], result.failed = at, errors.Join(result.failed, err)
	})
	return func() created {
		done()
		return result
	}
}

// inParallel calls do with each number below n, several at a time. The function that it returns waits for the last call.
func inParallel(n int, do func(i int)) (wait func()) {
	numbers := make(chan int)
	var group sync.WaitGroup
	for range creators {
		group.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	group.Go(func() {
		defer close(numbers)
		for i := range n {
			numbers <- i
		}
	})
	return group.Wait
}
