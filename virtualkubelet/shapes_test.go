package virtualkubelet

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// The shapes of public providers, from their documentation and their users' reports: what each of them says of a pod, and
// what it leaves out.

// notifying is a cloud that reports changes, as virtual-kubelet's mock does: no container IDs, a phase set by hand, and a
// last notification when a pod is deleted.
type notifying struct {
	*cloud
	notify func(*v1.Pod)
}

func (n *notifying) NotifyPods(_ context.Context, notify func(*v1.Pod)) { n.notify = notify }

func (n *notifying) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if err := n.cloud.CreatePod(ctx, pod); err != nil {
		return err
	}
	n.tell(pod.Name)
	return nil
}

func (n *notifying) DeletePod(ctx context.Context, pod *v1.Pod) error {
	last := pod.DeepCopy()
	last.Status = endedStatus(pod, 0)
	if err := n.cloud.DeletePod(ctx, pod); err != nil {
		return err
	}
	n.notify(last)
	return nil
}

func (n *notifying) tell(name string) {
	if pod, err := n.GetPod(context.Background(), "default", name); err == nil {
		n.notify(pod)
	}
}

func TestShape_Mock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &notifying{cloud: newCloud()}
		w := newWorld(t, provider)
		w.start()
		web, job := w.create("web"), w.create("job", never)
		synctest.Wait()
		w.want(web, "at once", v1.PodRunning, true)
		provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 1) })
		provider.tell("job")
		w.want(job, "at its notification", v1.PodFailed, false)
		w.api.DeleteGracefully("default", "web", 30)
		w.after(time.Second)
		w.wantGone(web, "deleted")
		provider.lose("job") // ended, so that nothing is lost
		w.after(5 * time.Minute)
		w.want(job, "later", v1.PodFailed, false)
		w.end()
	})
}

// A notification that is lost is found out by asking, within CheckInterval.
func TestShape_MockThatForgetsToNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &notifying{cloud: newCloud()}
		w := newWorld(t, provider)
		w.start()
		job, gone := w.create("job", never), w.create("gone")
		w.after(time.Second)
		provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 1) })
		provider.lose("gone")
		w.after(2 * time.Minute)
		w.want(job, "without a notification", v1.PodFailed, false)
		w.want(gone, "without a notification", v1.PodFailed, false)
		w.end()
	})
}

// A cloud's container instances: pods are found by name, because tags have no UID; an instance is seen only some seconds
// after it was asked for; states without conditions.
func TestShape_ContainerInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newCloud()
		asked := map[string]time.Time{}
		var mu sync.Mutex
		provider.keep = func(pod *v1.Pod) *v1.Pod {
			mu.Lock()
			defer mu.Unlock()
			asked[pod.Name] = time.Now()
			pod.UID, pod.CreationTimestamp, pod.Status.Conditions = "", metav1.Time{}, nil
			return pod
		}
		provider.setFault(func(method, name string) error {
			mu.Lock()
			defer mu.Unlock()
			if at, ok := asked[name]; ok && time.Since(at) < 8*time.Second && (method == "GetPodStatus" || method == "GetPod") {
				return errMissing{}
			}
			return nil
		})
		w := newWorld(t, provider)
		w.start()
		web := w.create("web")
		w.after(20 * time.Second)
		w.want(web, "once it is seen", v1.PodRunning, true)
		w.stop()
		time.Sleep(time.Minute)
		w.start()
		w.after(20 * time.Second)
		w.want(web, "after a restart", v1.PodRunning, true)
		if n := provider.creations(web); n != 1 {
			t.Errorf("the instance was created %d times, want once", n)
		}
		w.wantRepair(NoUID)

		w.stop() // replaced under its name while the process is down
		time.Sleep(time.Minute)
		w.api.Remove("default", "web")
		next := w.create("web")
		w.start()
		w.after(time.Minute)
		w.want(next, "the next pod of the name", v1.PodRunning, true)
		if n := provider.creations(next); n != 1 {
			t.Errorf("the next pod was created %d times, want once: an instance of the former pod was taken for it", n)
		}
		w.api.DeleteGracefully("default", "web", 30)
		w.after(time.Minute)
		w.wantGone(next, "deleted")
		w.end()
	})
}

// A bridge to Slurm or HTCondor: the phase is that of the job; the containers run as long as the bridge is asked, with a
// start of now each time.
func TestShape_BatchBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &batch{cloud: newCloud(), phases: map[string]v1.PodPhase{}}
		w := newWorld(t, provider)
		w.start()
		good, bad := w.create("good", never), w.create("bad", never)
		w.after(time.Hour)
		w.want(good, "after an hour", v1.PodRunning, true)
		if n := w.api.Count("PATCH"); n > 10 {
			t.Errorf("%d requests in an hour in which nothing happened: the start of now was sent each time", n)
		}
		provider.finish("good", v1.PodSucceeded)
		provider.finish("bad", v1.PodFailed)
		w.after(time.Minute)
		w.want(good, "completed", v1.PodSucceeded, false)
		w.want(bad, "failed", v1.PodFailed, false)
		w.wantRepair(EndedWhileRunning)
		w.wantRepair(TimeBack)
		provider.finish("good", v1.PodRunning) // the accounting database was restored
		w.after(time.Minute)
		w.want(good, "after the accounting went back", v1.PodSucceeded, false)
		w.end()
	})
}

type batch struct {
	*cloud
	mu     sync.Mutex
	phases map[string]v1.PodPhase
}

func (b *batch) finish(name string, phase v1.PodPhase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.phases[name] = phase
}

func (b *batch) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := b.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	status := runningStatus(pod)
	b.mu.Lock()
	defer b.mu.Unlock()
	if phase, ok := b.phases[name]; ok {
		status.Phase = phase
	}
	return &status, nil
}

// A cluster in a cluster: the statuses are whole, and the inner cluster's, with its own UIDs, conditions and readiness; it
// notifies of all pods of the namespace, and of some twice and out of order.
func TestShape_ClusterInCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &notifying{cloud: newCloud()}
		w := newWorld(t, provider)
		w.start()
		web := w.run("web")
		inner := func(change func(*v1.PodStatus)) *v1.Pod {
			pod := web.DeepCopy()
			pod.Status = runningStatus(pod)
			pod.Status.ContainerStatuses[0].ContainerID = "containerd://inner"
			pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: "inner.example.com/synced", Status: v1.ConditionTrue})
			change(&pod.Status)
			return pod
		}
		foreign := inner(func(s *v1.PodStatus) { s.Phase = v1.PodFailed })
		foreign.UID = "inner-uid"
		provider.notify(foreign)
		synctest.Wait()
		w.want(web, "a report of another UID", v1.PodRunning, true)
		w.wantRepair(OtherUID)

		provider.notify(inner(func(s *v1.PodStatus) { s.Conditions[0].Status = v1.ConditionFalse }))
		synctest.Wait()
		w.want(web, "not ready inside", v1.PodRunning, false)
		provider.notify(inner(func(s *v1.PodStatus) { s.Phase = v1.PodPending })) // out of order
		synctest.Wait()
		w.want(web, "an old report", v1.PodRunning, true)
		w.wantRepair(PhaseBack)
		w.wantRepair(Foreign)
		if c := podstatus.FindCondition(w.api.Pod(web).Status.Conditions, "inner.example.com/synced"); c != nil {
			t.Error("a condition of the inner cluster is in the API")
		}
		provider.notify(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stranger"}}) // of which the API knows nothing
		provider.notify(nil)
		w.end()
	})
}

// An edge device that is offline for hours: calls fail; pods go on there, and some end.
func TestShape_EdgeOfflineForHours(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		web, job, deleted := w.create("web"), w.create("job", never), w.create("deleted")
		w.after(time.Second)
		provider.setFault(func(string, string) error { return errCloud })
		w.after(time.Hour)
		w.want(web, "offline", v1.PodRunning, true)
		late := w.create("late")
		w.api.DeleteGracefully("default", "deleted", 30)
		provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 0) })
		w.after(4 * time.Hour)
		w.want(late, "asked for while offline", v1.PodPending, false)
		if why := w.api.Pod(late).Status.ContainerStatuses[0].State.Waiting; why == nil || why.Reason != "ProviderFailed" || why.Message != errCloud.Error() {
			t.Errorf("the pod waits as %+v, want the provider's error", why)
		}
		if w.api.Pod(deleted) == nil {
			t.Error("a pod is gone from the API whose device did not say that it ended")
		}
		provider.setFault(nil)
		w.after(5 * time.Minute)
		w.want(web, "online again", v1.PodRunning, true)
		w.want(job, "ended meanwhile", v1.PodSucceeded, false)
		w.want(late, "started late", v1.PodRunning, true)
		w.wantGone(deleted, "deleted meanwhile")
		for _, pod := range []*v1.Pod{web, job, late} {
			if n := provider.creations(pod); n != 1 {
				t.Errorf("pod %s was created %d times, want once", pod.Name, n)
			}
		}
	})
}

// Providers that panic, block or fail hold up the pod that it happens to, and no other.
func TestProviderThatPanicsAndBlocks_DelaysNoOtherPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newCloud()
		release := make(chan struct{})
		provider.setFault(func(method, name string) error {
			switch {
			case method == "CreatePod" && len(name) > 4 && name[:4] == "hung":
				<-release // whatever the context says
			case method == "CreatePod" && name == "panics":
				panic("nil map")
			}
			return nil
		})
		w := newWorld(t, provider)
		w.start()
		for i := range 30 { // more than may be under way at once
			w.create(fmt.Sprintf("hung-%d", i))
		}
		panics := w.create("panics")
		w.after(7 * time.Second)
		web := w.create("web")
		w.after(7 * time.Second)
		w.want(web, "beside 30 hung calls", v1.PodRunning, true)
		w.want(panics, "whose CreatePod panics", v1.PodPending, false)
		provider.setFault(nil)
		close(release)
		w.after(time.Minute)
		w.want(panics, "when it panics no more", v1.PodRunning, true)
		w.end()
	})
}

// The environment is resolved before a provider sees the pod; what is missing makes the containers wait.
func TestEnvironmentIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newCloud()
		w := newWorld(t, provider)
		objects := &someObjects{}
		w.start()
		w.kubelet.objects = objects
		pod := w.create("web", func(p *v1.Pod) {
			p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}}
			p.Spec.Containers[0].Env = []v1.EnvVar{
				{Name: "ME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "HELLO", Value: "$(GREETING) $(ME)"},
			}
		})
		w.after(time.Second)
		if why := w.api.Pod(pod).Status.ContainerStatuses[0].State.Waiting; why == nil || why.Reason != "CreateContainerConfigError" {
			t.Errorf("without its config map the container waits as %+v", why)
		}
		objects.set(map[string]string{"GREETING": "hello"})
		w.after(time.Minute)
		w.want(pod, "with its config map", v1.PodRunning, true)
		got, _ := provider.GetPod(t.Context(), "default", "web")
		want := []v1.EnvVar{{Name: "GREETING", Value: "hello"}, {Name: "ME", Value: "web"}, {Name: "HELLO", Value: "hello web"}}
		if c := got.Spec.Containers[0]; fmt.Sprint(c.Env) != fmt.Sprint(want) || c.EnvFrom != nil {
			t.Errorf("the provider got %v and %v, want %v", c.Env, c.EnvFrom, want)
		}
		w.end()
	})
}
