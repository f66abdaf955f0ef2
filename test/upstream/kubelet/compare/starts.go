package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/hostproc"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/stock"
)

// limitsOf are the kubelet's limits of requests for a setting, and what each request takes longer.
var limitsOf = map[string]struct {
	qps, burst int
	delay      time.Duration
}{
	"default": {qps: 50, burst: 100},
	"none":    {qps: 100_000, burst: 100_000}, // a kubelet takes no negative number
	"rtt50":   {qps: 100_000, burst: 100_000, delay: 50 * time.Millisecond},
	"former":  {qps: 5, burst: 10}, // the defaults before Kubernetes 1.27
}

// result is what was measured of one burst of starts.
type result struct {
	agent, limits string
	pods          int
	ready         []time.Duration // started → Ready seen
	created       []time.Duration // created → Ready seen
	lost          []time.Duration // probe failed → Ready lost seen
	resting       float64         // percent of one CPU with all pods running
	resident      float64         // MiB
	private       float64         // MiB of it without pages of files
	requests      map[string]int
	lives         int // pods that the requests are of
	gone          time.Duration
}

const startsHead = `| limits | pods | kubelet | created → Ready seen, p50 | p99 | started → Ready seen, p50 | p99 | probe failed → Ready lost seen, median of 10 | slowest | status requests per pod life | GET / PATCH / DELETE / LIST | CPU % at rest | MiB | private | all deleted → gone |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|
`

func (r result) String() string {
	sum := 0
	for _, n := range r.requests {
		sum += n
	}
	ms := func(times []time.Duration, p int) string {
		return campaign.Percentile(times, p).Round(time.Millisecond).String()
	}
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s | %s | %s | %.2f | %d / %d / %d / %d | %.1f | %.0f | %.0f | %.1f s |\n", r.limits, r.pods, r.agent,
		ms(r.created, 50), ms(r.created, 99), ms(r.ready, 50), ms(r.ready, 99), ms(r.lost, 50), ms(r.lost, 100), float64(sum)/float64(r.lives),
		r.requests["GET"], r.requests["PATCH"], r.requests["DELETE"], r.requests["LIST"], r.resting, r.resident, r.private, r.gone.Seconds())
}

// compareAll measures each number of pods with each of the limits and each kubelet, on one API server, and prints a table.
func compareAll[T fmt.Stringer](ctx context.Context, head string, agents []agent, limits []string, sizes []int,
	measure func(ctx context.Context, api *controlplane.Process, dir string, a agent, limit string, pods int) (T, error)) error {
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	api, err := controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(dir, "api"), Log: campaign.Out})
	if err != nil {
		return err
	}
	defer func() { _ = api.Kill() }()
	table := head
	for _, limit := range limits {
		for _, pods := range sizes {
			for _, a := range agents {
				r, err := measure(ctx, api, dir, a, limit, pods)
				if err != nil {
					return fmt.Errorf("%s, %s, %d pods: %w", a.name, limit, pods, err)
				}
				fmt.Fprint(campaign.Out, r)
				table += r.String()
			}
		}
	}
	campaign.Out.Close()
	fmt.Printf("\n%s", table)
	return nil
}

func measureStarts(ctx context.Context, api *controlplane.Process, dir string, a agent, limit string, pods int) (r result, err error) {
	setting, ok := limitsOf[limit]
	if !ok {
		return r, fmt.Errorf("there is no setting %q", limit)
	}
	r = result{agent: a.name, limits: limit, pods: pods, lives: pods + probed}
	name := fmt.Sprintf("%s-%s-%d", a.name, limit, pods)
	between, err := newProxy(api, name, setting.delay)
	if err != nil {
		return r, err
	}
	defer between.close()
	kubeconfig := filepath.Join(dir, name+".kubeconfig")
	if err := between.writeKubeconfig(kubeconfig); err != nil {
		return r, err
	}
	n, err := a.startNode(ctx, api, name, kubeconfig, fmt.Sprintf("kubeAPIQPS: %d\nkubeAPIBurst: %d\n", setting.qps, setting.burst))
	if err != nil {
		return r, err
	}
	defer func() {
		_ = n.Admin().CoreV1().Nodes().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
		err = errors.Join(err, n.Close())
	}()
	answers, err := listenForProbes()
	if err != nil {
		return r, err
	}
	defer answers.close()
	b := &burst{node: n, signs: filepath.Join(n.Dir(), "signs"), pods: pods, answers: answers}
	if err := os.Mkdir(b.signs, 0o777); err != nil {
		return r, err
	}
	seen, err := watchPods(ctx, n.Admin())
	if err != nil {
		return r, err
	}
	between.taken()
	if err := b.run(ctx, seen, &r); err != nil {
		return r, fmt.Errorf("%w\n%s", err, n.Tail(5))
	}
	r.requests = between.taken()
	return r, nil
}

// burst is a start of many pods at once on a node.
type burst struct {
	node    *stock.Node
	signs   string // a directory in which containers leave files
	pods    int
	answers *answers
}

// pod is one that leaves a file when it starts, and ends when it is asked to.
func (b *burst) pod(name string) *v1.Pod {
	pod := b.node.Pod(name, ": >/signs/"+name+"; trap 'exit 0' TERM; sleep 100000 & wait")
	grace := int64(30)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.Volumes = []v1.Volume{{Name: "signs", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: b.signs}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "signs", MountPath: "/signs"}}
	return pod
}

func (b *burst) run(ctx context.Context, seen <-chan sight, r *result) error {
	for i := range probed {
		pod := b.pod(probedName(i))
		pod.Spec.Containers[0].ReadinessProbe = b.answers.probe(pod.Name)
		if _, err := b.node.Create(ctx, pod); err != nil {
			return err
		}
	}
	if err := awaitProbed(ctx, seen); err != nil {
		return err
	}
	created := map[string]time.Time{}
	for i := range b.pods {
		name := fmt.Sprintf("pod-%d", i)
		created[name] = time.Now()
		if _, err := b.node.Create(ctx, b.pod(name)); err != nil {
			return err
		}
	}
	ready, lost, err := b.answers.awaitStart(ctx, seen, b.pods, r.agent+" "+r.limits)
	if err != nil {
		return err
	}
	r.lost = lost
	for name, at := range ready {
		started, err := os.Stat(filepath.Join(b.signs, name))
		if err != nil {
			return err
		}
		r.ready = append(r.ready, at.Sub(started.ModTime()))
		r.created = append(r.created, at.Sub(created[name]))
	}
	if err := r.rest(ctx, b.node.Kubelet.Process().PID()); err != nil {
		return err
	}
	r.gone, err = clearPods(ctx, b.node.Admin(), seen, b.pods+probed)
	return err
}

// rest measures the agent while its pods do nothing.
func (r *result) rest(ctx context.Context, pid int) error {
	campaign.Out.Set("%s %s: at rest", r.agent, r.limits)
	before, err := hostproc.Read("/proc", pid)
	if err != nil {
		return err
	}
	if err := campaign.Pause(ctx, atRest); err != nil {
		return err
	}
	after, err := hostproc.Read("/proc", pid)
	if err != nil {
		return err
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return err
	}
	var size, pages, shared int
	if _, err := fmt.Sscan(string(statm), &size, &pages, &shared); err != nil {
		return err
	}
	mebibytes := func(pages int) float64 { return float64(pages*os.Getpagesize()) / (1 << 20) }
	r.resting, r.resident, r.private = 100*(after.CPU-before.CPU).Seconds()/atRest.Seconds(), mebibytes(pages), mebibytes(pages-shared)
	return nil
}

// clearPods deletes all pods and returns how long it takes until they are gone.
func clearPods(ctx context.Context, admin kubernetes.Interface, seen <-chan sight, left int) (time.Duration, error) {
	began := time.Now()
	if err := deleteAll(ctx, admin); err != nil {
		return 0, err
	}
	err := await(ctx, seen, func(s sight) bool {
		if s.gone {
			left--
		}
		campaign.Out.Set("%d pods left", left)
		return left == 0
	})
	if err != nil {
		return 0, fmt.Errorf("%d pods are left: %w", left, err)
	}
	return time.Since(began), nil
}

// deleteAll deletes the pods one by one: on a busy machine, one request for all of them may take longer than the server allows.
func deleteAll(ctx context.Context, admin kubernetes.Interface) error {
	pods := admin.CoreV1().Pods(metav1.NamespaceDefault)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range list.Items {
		if err := stock.Await(ctx, func() error {
			err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// sight is what a watch has shown of a pod.
type sight struct {
	at          time.Time
	name        string
	ready, gone bool
}

// watchPods watches the pods of the default namespace, which only this program uses.
func watchPods(ctx context.Context, admin kubernetes.Interface) (<-chan sight, error) {
	watch, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	seen := make(chan sight, 100_000) // more than there are events, so that times are those of the watch
	go func() {
		defer close(seen)
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok {
				s := sight{at: time.Now(), name: pod.Name, ready: stock.Ready(pod), gone: event.Type == "DELETED"}
				seen <- s
			}
		}
	}()
	return seen, nil
}

// await takes sights until one is the last that is wanted.
func await(ctx context.Context, seen <-chan sight, last func(sight) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Minute, errors.New("not within 20 minutes"))
	defer cancel()
	for {
		select {
		case s, open := <-seen:
			if !open {
				return errors.New("the watch has ended")
			}
			if last(s) {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func hasPrefix(pod *v1.Pod, kind string) bool { return strings.HasPrefix(pod.Name, kind+"-") }
