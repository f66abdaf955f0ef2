package worker_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// A kubelet rejects no pod because of what a container asks for: the container waits (ErrImagePull, InvalidImageName,
// CreateContainerConfigError), so that a ReplicaSet does not replace the pod.
func TestUnsupportedPod_WaitsWithTheFieldAsMessage(t *testing.T) {
	story(t, func(n *node) {
		var refused atomic.Bool
		refused.Store(true)
		n.rt.RejectWith(func(*v1.Pod) []runtime.Unsupported {
			if !refused.Load() {
				return nil
			}
			return []runtime.Unsupported{{Field: "spec.hostAliases", Reason: "a process uses /etc/hosts of the machine"}}
		})
		pod := newPod("web", v1.Container{Name: "main"}, v1.Container{Name: "other"})
		n.update(pod)
		for range 2 {
			n.wantPhase(pod, "refused", v1.PodPending)
			for _, name := range []string{"main", "other"} {
				n.wantState(pod, name, "refused", "Waiting CreateContainerConfigError")
				if got := n.container(pod, name).State.Waiting.Message; got != "spec.hostAliases: a process uses /etc/hosts of the machine" {
					t.Errorf("container %s: got message %q, want the field", name, got)
				}
			}
			n.sleep(time.Hour)
		}
		n.wantStarts("forever")
		if calls := strings.Join(n.rt.Calls(), " "); strings.Contains(calls, "StartPod") {
			t.Errorf("got calls %q, want no sandbox of a pod that cannot be run", calls)
		}
		refused.Store(false) // as after a change of the node's configuration
		n.sleep(10 * time.Second)
		n.wantPhase(pod, "supported at last", v1.PodRunning)
	})
}

func TestUnsupportedPod_EndsWhenItIsDeleted(t *testing.T) {
	story(t, func(n *node) {
		n.rt.RejectWith(func(*v1.Pod) []runtime.Unsupported { return []runtime.Unsupported{{Field: "spec.hostAliases"}} })
		pod := newPod("web")
		n.update(pod)
		n.delete(pod, 30)
		if n.workers.CouldHaveRunningContainers(pod) {
			t.Error("a pod of which nothing was started could have running containers")
		}
		if got := n.get(pod); !podstatus.IsTerminal(got.Phase) {
			t.Errorf("got phase %s, want the end", got.Phase)
		}
	})
}

// What one container asks for keeps the others from nothing.
func TestUnsupportedContainer_OthersRun(t *testing.T) {
	story(t, func(n *node) {
		n.rt.RejectWith(func(*v1.Pod) []runtime.Unsupported {
			return []runtime.Unsupported{
				{Container: "bad", Field: "spec.containers[1].image", Reason: "no such image", Waiting: runtime.WaitingInvalidImageName},
				{Container: "bad", Field: "spec.containers[1].env", Reason: "no such name"},
			}
		})
		pod := newPod("web", v1.Container{Name: "good"}, v1.Container{Name: "bad"})
		n.update(pod)
		n.wantState(pod, "good", "beside it", "Running")
		n.wantState(pod, "bad", "refused", "Waiting InvalidImageName")
		if got, want := n.container(pod, "bad").State.Waiting.Message, "spec.containers[1].image: no such image; spec.containers[1].env: no such name"; got != want {
			t.Errorf("got message %q, want %q", got, want)
		}
	})
}

// A kubelet tries to pull after 10 s, 20 s, ..., 5 min, and calls the wait ImagePullBackOff.
func TestImageThatCannotBePulled_BacksOff(t *testing.T) {
	story(t, func(n *node) {
		var mu sync.Mutex // guards tries
		var tries []time.Duration
		n.rt.RejectWith(func(pod *v1.Pod) []runtime.Unsupported {
			if pod.Spec.Containers[0].Image == "host" {
				return nil
			}
			mu.Lock()
			tries = append(tries, time.Since(n.begin).Round(time.Second))
			mu.Unlock()
			return []runtime.Unsupported{{Container: "main", Field: "spec.containers[0].image", Reason: "must be host", Waiting: runtime.WaitingImagePull}}
		})
		pod := newPod("web", v1.Container{Name: "main", Image: "nginx:1"})
		n.update(pod)
		n.wantState(pod, "main", "at first", "Waiting ErrImagePull")
		n.sleep(12 * time.Second)
		n.wantState(pod, "main", "after a second try", "Waiting ImagePullBackOff")
		if got, want := n.container(pod, "main").State.Waiting.Message, `Back-off pulling image "nginx:1": ErrImagePull: spec.containers[0].image: must be host`; got != want {
			t.Errorf("got message %q, want %q", got, want)
		}
		n.sleep(30 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(tries[:7]), "[0s 10s 30s 1m10s 2m30s 5m10s 10m10s]"; got != want {
			t.Errorf("tried at %s, want %s", got, want)
		}
		n.update(withImage(pod, "host")) // another image has a back-off of its own
		n.wantState(pod, "main", "edited", "Running")
	})
}

// replicas is what a ReplicaSet does: it replaces each pod that has failed, at once.
type replicas struct {
	n     *node
	uid   types.UID
	alive map[types.UID]*v1.Pod
	made  int
}

func (r *replicas) reconcile(count int) {
	for uid, pod := range r.alive {
		if status, known := r.n.status.GetPodStatus(uid); known && podstatus.IsTerminal(status.Phase) {
			delete(r.alive, uid)
			r.n.remove(pod)
		}
	}
	for len(r.alive) < count {
		r.made++
		pod := newPod(fmt.Sprintf("%s-%d", r.uid, r.made))
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: r.uid, Controller: new(true)}}
		r.alive[pod.UID] = pod
		r.n.update(pod)
	}
}

// A rejected pod is replaced at once. What slows its controller down is that the next one stays Pending for longer.
func TestRejectionsOfOneOwner_AreBraked(t *testing.T) {
	for _, count := range []int{1, 3} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			var room atomic.Bool
			story(t, func(n *node) {
				set := &replicas{n: n, uid: "set", alive: map[types.UID]*v1.Pod{}}
				for range 600 {
					set.reconcile(count)
					n.sleep(time.Second)
				}
				if most := 12 + count - 1; set.made > most || set.made < 8 {
					t.Errorf("%d pods were made in 10 minutes for %d replicas, want between 8 and %d", set.made, count, most)
				}
				begin := time.Now()
				other := newPod("other")
				n.update(other)
				n.wantPhase(other, "a pod without owner", v1.PodFailed)
				another := &replicas{n: n, uid: "another", alive: map[types.UID]*v1.Pod{}}
				another.reconcile(1)
				another.reconcile(1)
				if another.made != 2 || time.Since(begin) > 0 {
					t.Errorf("the first rejection of another owner was delayed: %d pods made", another.made)
				}
				for uid, pod := range set.alive {
					if status, known := n.status.GetPodStatus(uid); known && status.Phase != v1.PodPending {
						t.Errorf("pod %s: phase %s, want Pending while it is braked", pod.Name, status.Phase)
					}
				}
				room.Store(true) // meanwhile
				n.sleep(time.Minute)
				for _, pod := range set.alive {
					n.wantPhase(pod, "braked, and there is room", v1.PodRunning)
				}
			}, func(o *worker.Options) {
				o.Admit = func(*v1.Pod, []*v1.Pod) *fit.Rejection {
					if room.Load() {
						return nil
					}
					return &fit.Rejection{Reason: "OutOfcpu", Message: "no room"}
				}
			})
		})
	}
}

// The pods of an owner whose rejections ended long ago are rejected at once again.
func TestRejectionsOfOneOwner_AreForgotten(t *testing.T) {
	story(t, func(n *node) {
		set := &replicas{n: n, uid: "set", alive: map[types.UID]*v1.Pod{}}
		for range 60 {
			set.reconcile(1)
			n.sleep(time.Second)
		}
		set.reconcile(0)
		n.sleep(time.Hour)
		set.reconcile(0)
		before := set.made
		set.reconcile(1)
		set.reconcile(1)
		if set.made != before+2 {
			t.Errorf("%d pods made, want the first to be replaced at once", set.made-before)
		}
	}, func(o *worker.Options) {
		o.Admit = func(*v1.Pod, []*v1.Pod) *fit.Rejection { return &fit.Rejection{Reason: "OutOfcpu", Message: "no room"} }
	})
}

// A reload makes other Workers in the same process. A container that keeps failing is started when it was due, not at once.
func TestBackOff_GoesOnAfterAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, memory := newMachine(), &worker.Memory{}
		m.rt.Script(func(_ *v1.Pod, _ *v1.Container, attempt int) runtimefake.Behavior {
			return runtimefake.Behavior{Lives: time.Second, ExitCode: 1}
		})
		pod := newPod("web")
		var starts []string
		for range 20 {
			n := m.run(t, func(o *worker.Options) { o.Memory = memory })
			n.update(pod) // before the sources are ready: a pod that no source knows is ended
			n.workers.SourcesReady()
			n.sleep(6 * time.Second)
			starts = n.starts()
			if waiting := n.container(pod, "main").State.Waiting; waiting != nil && waiting.Reason != "CrashLoopBackOff" {
				t.Errorf("got %+v, want CrashLoopBackOff", waiting)
			}
			n.stop()
		}
		// Within two minutes: at 0 s, 1 s, 12 s, 33 s, 74 s.
		if len(starts) != 5 {
			t.Errorf("%d starts in two minutes with 20 reloads, want 5: %q", len(starts), starts)
		}
	})
}
