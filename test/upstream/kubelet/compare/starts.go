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

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/stock"
)

// limitsOf are the lines of the kubelet's configuration for a setting, and what each request takes longer.
var limitsOf = map[string]struct {
	settings string
	delay    time.Duration
}{
	"default": {},
	"none":    {settings: "kubeAPIQPS: -1\n"},
	"rtt50":   {settings: "kubeAPIQPS: -1\n", delay: 50 * time.Millisecond},
}

// result is what was measured of one burst of starts.
type result struct {
	agent, limits string
	pods          int
	ready         []time.Duration // started → Ready seen
	lost          time.Duration   // readiness lost → seen
	requests      map[string]int
	lives         int // pods that the requests are of
	gone          time.Duration
}

const startsHead = `| limits | pods | kubelet | started → Ready seen, p50 | p99 | Ready lost → seen | status requests per pod life | GET / PATCH / DELETE | all deleted → gone |
|---|--:|---|--:|--:|--:|--:|---|--:|
`

func (r result) String() string {
	sum := 0
	for _, n := range r.requests {
		sum += n
	}
	ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %.2f | %d / %d / %d | %.1f s |\n", r.limits, r.pods, r.agent,
		ms(campaign.Percentile(r.ready, 50)), ms(campaign.Percentile(r.ready, 99)), ms(r.lost), float64(sum)/float64(r.lives),
		r.requests["GET"], r.requests["PATCH"], r.requests["DELETE"], r.gone.Seconds())
}

func compareStarts(ctx context.Context, agents []agent, limits []string, sizes []int) error {
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
	table := startsHead
	for _, limit := range limits {
		for _, pods := range sizes {
			for _, a := range agents {
				r, err := measureStarts(ctx, api, dir, a, limit, pods)
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
	r = result{agent: a.name, limits: limit, pods: pods, lives: pods + 1}
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
	n, err := a.startNode(ctx, api, name, kubeconfig, setting.settings)
	if err != nil {
		return r, err
	}
	defer func() {
		_ = n.Admin().CoreV1().Nodes().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
		err = errors.Join(err, n.Close())
	}()
	b := &burst{node: n, signs: filepath.Join(n.Dir(), "signs"), pods: pods}
	if err := os.Mkdir(b.signs, 0o777); err != nil {
		return r, err
	}
	seen, err := watchPods(ctx, n)
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
	node  *stock.Node
	signs string // a directory in which containers leave files
	pods  int
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

// fickle is a pod that is ready as long as there is a file, and leaves another one when it finds out that there is not.
func (b *burst) fickle() *v1.Pod {
	pod := b.pod("fickle")
	pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{
		ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c",
			"test -e /signs/fine && exit 0; test -e /signs/failed || : >/signs/failed; exit 1"}}},
		PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 30,
	}
	return pod
}

func (b *burst) run(ctx context.Context, seen <-chan sight, r *result) error {
	fine := filepath.Join(b.signs, "fine")
	if err := os.WriteFile(fine, nil, 0o644); err != nil {
		return err
	}
	if _, err := b.node.Create(ctx, b.fickle()); err != nil {
		return err
	}
	if err := await(ctx, seen, func(s sight) bool { return s.name == "fickle" && s.ready }); err != nil {
		return fmt.Errorf("the pod that will lose readiness is not ready: %w", err)
	}
	for i := range b.pods {
		if _, err := b.node.Create(ctx, b.pod(fmt.Sprintf("pod-%d", i))); err != nil {
			return err
		}
	}
	ready := map[string]time.Time{}
	var lost time.Time
	removed := false
	err := await(ctx, seen, func(s sight) bool {
		switch {
		case s.name == "fickle" && !s.ready && removed && lost.IsZero():
			lost = s.at
		case s.name != "fickle" && s.ready && ready[s.name].IsZero():
			ready[s.name] = s.at
		}
		// In the middle of the burst.
		if !removed && len(ready) >= b.pods/3 {
			removed = true
			if err := os.Remove(fine); err != nil {
				panic(err) // this program made it
			}
		}
		campaign.Out.Set("%s %s: %d of %d pods ready", r.agent, r.limits, len(ready), b.pods)
		return len(ready) == b.pods && !lost.IsZero()
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods are ready: %w", len(ready), b.pods, err)
	}
	for name, at := range ready {
		started, err := os.Stat(filepath.Join(b.signs, name))
		if err != nil {
			return err
		}
		r.ready = append(r.ready, at.Sub(started.ModTime()))
	}
	failed, err := os.Stat(filepath.Join(b.signs, "failed"))
	if err != nil {
		return err
	}
	r.lost = lost.Sub(failed.ModTime())
	return b.clear(ctx, seen, r)
}

// clear deletes all pods and waits until they are gone.
func (b *burst) clear(ctx context.Context, seen <-chan sight, r *result) error {
	began, left := time.Now(), b.pods+1
	if err := b.deleteAll(ctx); err != nil {
		return err
	}
	err := await(ctx, seen, func(s sight) bool {
		if s.gone {
			left--
		}
		campaign.Out.Set("%s %s: %d pods left", r.agent, r.limits, left)
		return left == 0
	})
	if err != nil {
		return fmt.Errorf("%d pods are left: %w", left, err)
	}
	r.gone = time.Since(began)
	return nil
}

// deleteAll deletes the pods one by one: on a busy machine, one request for all of them may take longer than the server allows.
func (b *burst) deleteAll(ctx context.Context) error {
	pods := b.node.Admin().CoreV1().Pods(metav1.NamespaceDefault)
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
func watchPods(ctx context.Context, n *stock.Node) (<-chan sight, error) {
	watch, err := n.Admin().CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	seen := make(chan sight, 10_000) // more than there are events, so that times are those of the watch
	go func() {
		defer close(seen)
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok {
				seen <- sight{time.Now(), pod.Name, stock.Ready(pod), event.Type == "DELETED"}
			}
		}
	}()
	return seen, nil
}

// await takes sights until one is the last that is wanted.
func await(ctx context.Context, seen <-chan sight, last func(sight) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("not within 10 minutes"))
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
