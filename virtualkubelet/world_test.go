package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
)

// world is a node of a provider before an API server in memory, for tests in virtual time.
type world struct {
	t        *testing.T
	api      *statustest.Server
	provider Provider
	journal  status.Ends
	alter    func(*Options)

	kubelet *kubelet
	stop    func() // as kill -9: nothing is delivered
	broken  []string
	mu      sync.Mutex
	repairs map[Kind]int
}

func newWorld(t *testing.T, provider Provider) *world {
	w := &world{t: t, api: statustest.New(), provider: provider, repairs: map[Kind]int{}}
	last := map[types.UID]*v1.Pod{}
	w.api.OnStore(func(pod *v1.Pod) { // what the API shows holds the rules, whatever a provider says
		if before := last[pod.UID]; before != nil {
			w.check(before, pod)
		}
		last[pod.UID] = pod
	})
	return w
}

// scenario runs a node of a cloud in virtual time. Nothing may be broken at its end.
func scenario(t *testing.T, play func(t *testing.T, w *world, provider *cloud), before ...func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		provider := newCloud()
		w := newWorld(t, provider)
		for _, alter := range before {
			alter(w)
		}
		w.start()
		play(t, w, provider)
		w.end()
	})
}

func (w *world) check(before, pod *v1.Pod) {
	broken := func(format string, args ...any) {
		w.broken = append(w.broken, pod.Name+": "+fmt.Sprintf(format, args...))
	}
	old, now := &before.Status, &pod.Status
	if podstatus.IsTerminal(old.Phase) && now.Phase != old.Phase {
		broken("left %s for %s", old.Phase, now.Phase)
	}
	if old.Phase == v1.PodRunning && now.Phase == v1.PodPending {
		broken("went from Running to Pending")
	}
	if old.StartTime != nil && !old.StartTime.Equal(now.StartTime) {
		broken("start time moved from %v to %v", old.StartTime, now.StartTime)
	}
	ready := podstatus.FindCondition(now.Conditions, v1.PodReady)
	if podstatus.IsTerminal(now.Phase) && ready != nil && ready.Status == v1.ConditionTrue {
		broken("%s and Ready", now.Phase)
	}
	for i := range now.ContainerStatuses {
		c := &now.ContainerStatuses[i]
		if podstatus.IsTerminal(now.Phase) && c.State.Running != nil {
			broken("%s with container %s running", now.Phase, c.Name)
		}
		was := podstatus.FindContainerStatus(old, c.Name)
		if was == nil {
			continue
		}
		if c.RestartCount < was.RestartCount {
			broken("restarts of %s went from %d to %d", c.Name, was.RestartCount, c.RestartCount)
		}
		if was.State.Terminated != nil && c.State.Terminated == nil && pod.Spec.RestartPolicy == v1.RestartPolicyNever {
			broken("container %s came back", c.Name)
		}
	}
}

// start runs a node, in place of the one before.
func (w *world) start() {
	w.t.Helper()
	o := Options{NodeName: "n", Provider: w.provider, Journal: w.journal, Logger: slog.New(slog.DiscardHandler)}
	o.OnRepair = func(_ *v1.Pod, r Repaired) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.repairs[r.Kind]++
	}
	if w.alter != nil {
		w.alter(&o)
	}
	o.setDefaults()
	k, err := newKubelet(o, w.api.Client())
	if err != nil {
		w.t.Fatal(err)
	}
	w.kubelet = k
	ctx, cancel := context.WithCancel(w.t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { _ = k.manager.Run(ctx) })
	parts.Go(func() { _ = k.run(ctx) })
	parts.Go(func() {
		k.handle(source.Change{Op: source.Set, Pods: w.api.Pods()})
		w.api.Watch(ctx, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(pod any) { k.handle(source.Change{Op: source.Update, Pods: []*v1.Pod{pod.(*v1.Pod)}}) },
			UpdateFunc: func(_, pod any) { k.handle(source.Change{Op: source.Update, Pods: []*v1.Pod{pod.(*v1.Pod)}}) },
			DeleteFunc: func(pod any) {
				if gone, ok := pod.(cache.DeletedFinalStateUnknown); ok {
					pod = gone.Obj
				}
				k.handle(source.Change{Op: source.Remove, Pods: []*v1.Pod{pod.(*v1.Pod)}})
			},
		})
	})
	w.stop = func() { cancel(); parts.Wait() }
}

func (w *world) create(name string, alter ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec:       v1.PodSpec{NodeName: "n", RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "main", Image: "app"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
	for _, a := range alter {
		a(pod)
	}
	return w.api.Put(pod)
}

// run creates a pod that the provider starts.
func (w *world) run(name string, alter ...func(*v1.Pod)) *v1.Pod {
	pod := w.create(name, alter...)
	w.after(time.Second)
	return pod
}

func (w *world) wantCreatedOnce(provider *cloud, pods ...*v1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		if n := provider.creations(pod); n != 1 {
			w.t.Errorf("pod %s was created %d times, want once", pod.Name, n)
		}
	}
}

// refuses has a method of the provider fail until the function that it returns is called.
func (c *cloud) refuses(failing string) (works func()) {
	c.setFault(func(method, _ string) error {
		if method == failing {
			return errCloud
		}
		return nil
	})
	return func() { c.setFault(nil) }
}

func never(pod *v1.Pod) { pod.Spec.RestartPolicy = v1.RestartPolicyNever }

func (w *world) after(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func (w *world) want(pod *v1.Pod, story string, phase v1.PodPhase, ready bool) {
	w.t.Helper()
	synctest.Wait()
	got := w.api.Pod(pod)
	if got == nil {
		w.t.Errorf("%s: the API has no pod %s, want it %s", story, pod.Name, phase)
		return
	}
	c := podstatus.FindCondition(got.Status.Conditions, v1.PodReady)
	if is := c != nil && c.Status == v1.ConditionTrue; got.Status.Phase != phase || is != ready || got.UID != pod.UID {
		w.t.Errorf("%s: pod %s (%s) is %s, ready %t; want %s (%s) %s, ready %t\n%+v", story, pod.Name, got.UID, got.Status.Phase, is, pod.Name, pod.UID, phase, ready, got.Status)
	}
}

func (w *world) wantGone(pod *v1.Pod, story string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.api.Pod(pod); got != nil && got.UID == pod.UID {
		w.t.Errorf("%s: pod %s is there, want it gone: %+v", story, pod.Name, got.Status)
	}
}

func (w *world) end() {
	w.t.Helper()
	w.stop()
	if len(w.broken) > 0 {
		w.t.Errorf("the API showed what cannot be:\n%v", w.broken)
	}
}

func (w *world) wantRepair(kind Kind) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.repairs[kind] == 0 {
		w.t.Errorf("no repair %s was counted, got %v", kind, w.repairs)
	}
}

// errMissing is an error as virtual-kubelet's errdefs.NotFound makes it.
type errMissing struct{}

func (errMissing) Error() string  { return "no such pod" }
func (errMissing) NotFound() bool { return true }

// cloud is a provider that must be asked. It runs every pod at once.
type cloud struct {
	mu      sync.Mutex
	pods    map[string]*v1.Pod
	made    map[types.UID]int
	updates int
	removed []string
	// fault decides on each call, by method and pod name.
	fault func(method, name string) error
	// keep makes what is stored of a pod that is created.
	keep func(*v1.Pod) *v1.Pod
}

func newCloud() *cloud { return &cloud{pods: map[string]*v1.Pod{}, made: map[types.UID]int{}} }

func (c *cloud) fails(method, name string) error {
	c.mu.Lock()
	fault := c.fault
	c.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(method, name)
}

func (c *cloud) CreatePod(_ context.Context, pod *v1.Pod) error {
	if err := c.fails("CreatePod", pod.Name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[pod.UID]++
	kept := pod.DeepCopy()
	kept.Status = runningStatus(pod)
	if c.keep != nil {
		kept = c.keep(kept)
	}
	c.pods[pod.Namespace+"/"+pod.Name] = kept
	return nil
}

func (c *cloud) UpdatePod(_ context.Context, pod *v1.Pod) error {
	if err := c.fails("UpdatePod", pod.Name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates++
	return nil
}

func (c *cloud) DeletePod(_ context.Context, pod *v1.Pod) error {
	if err := c.fails("DeletePod", pod.Name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pods[pod.Namespace+"/"+pod.Name] == nil {
		return errMissing{}
	}
	delete(c.pods, pod.Namespace+"/"+pod.Name)
	c.removed = append(c.removed, string(pod.UID))
	return nil
}

func (c *cloud) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	if err := c.fails("GetPod", name); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod := c.pods[namespace+"/"+name]; pod != nil {
		return pod.DeepCopy(), nil
	}
	return nil, errMissing{}
}

func (c *cloud) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	if err := c.fails("GetPodStatus", name); err != nil {
		return nil, err
	}
	pod, err := c.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

func (c *cloud) GetPods(context.Context) ([]*v1.Pod, error) {
	if err := c.fails("GetPods", ""); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		all = append(all, c.pods[name].DeepCopy())
	}
	return all, nil
}

func (c *cloud) setFault(fault func(method, name string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// change changes what the provider has.
func (c *cloud) change(name string, change func(*v1.Pod)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.pods["default/"+name])
}

func (c *cloud) lose(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, "default/"+name)
}

func (c *cloud) creations(pod *v1.Pod) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[pod.UID]
}

var errCloud = errors.New("the cloud is on fire")

func runningStatus(pod *v1.Pod) v1.PodStatus {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	status := v1.PodStatus{Phase: v1.PodRunning, StartTime: &now, PodIP: "10.0.0.7", Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}

func endedStatus(pod *v1.Pod, code int32) v1.PodStatus {
	status := runningStatus(pod)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	if status.Phase = v1.PodSucceeded; code != 0 {
		status.Phase = v1.PodFailed
	}
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].Ready = false
		status.ContainerStatuses[i].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, StartedAt: now, FinishedAt: now}}
	}
	status.Conditions = nil
	return status
}
