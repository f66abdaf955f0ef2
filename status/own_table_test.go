package status

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/statustest"
)

// newEmbedder makes a world whose manager keeps its own table and is fed by an informer's handler.
func newEmbedder(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := newWorld(t, append(change, func(o *Options) { o.Pods = nil })...)
	w.table = w.manager.table
	handler := w.manager.EventHandler()
	w.api.OnStore(func(pod *v1.Pod) { handler.OnAdd(pod, false) })
	w.api.OnRemove(func(pod *v1.Pod) { handler.OnDelete(pod) })
	return w
}

// countTurns counts the turns of all pods from now on. It is called before run.
func (w *world) countTurns() *atomic.Int64 {
	turns := &atomic.Int64{}
	turn := w.manager.engine.turn
	w.manager.engine.turn = func(ctx context.Context, uid types.UID, alone bool) outcome {
		turns.Add(1)
		return turn(ctx, uid, alone)
	}
	return turns
}

// wantNothingLeft looks for remains of pods in everything that the manager keeps of them.
func (w *world) wantNothingLeft(memory *journal.Memory) {
	w.Helper()
	synctest.Wait()
	for _, kept := range []any{w.manager.cache, &w.manager.engine.inbox, w.manager.resizes, w.manager.table} {
		wantEmptyMaps(w.T, kept)
	}
	if left := len(w.manager.writes.failed); left > 0 {
		w.Errorf("%d writes that failed are left", left)
	}
	if left := len(w.manager.ends.unnamed); left > 0 {
		w.Errorf("ends of containers are left of %d pods", left)
	}
	if left, err := memory.RetainPods(func(types.UID) bool { return false }); left > 0 || err != nil {
		w.Errorf("the journal has %d pods (%v)", left, err)
	}
}

// collected has Succeeded, with all that is kept of a pod, and is deleted by another client.
func collected(w *world, pod *v1.Pod) {
	must(w.manager.SetPodAllocation(pod))
	w.manager.Resizes().SetPodResizePendingCondition(pod.UID, v1.PodReasonDeferred, "", 1)
	w.set(pod, running(pod, true))
	must(w.manager.ObserveTermination(pod.UID, "process://"+string(pod.UID), v1.ContainerStateTerminated{}))
	w.report(pod, ended(pod, 0))
	w.api.Remove(pod.Namespace, pod.Name)
}

// forcedAndReportedLate is force-deleted; that its container has ended is noticed later.
func forcedAndReportedLate(w *world, pod *v1.Pod) {
	w.report(pod, running(pod, true))
	w.api.Remove(pod.Namespace, pod.Name)
	if err := w.manager.ObserveTermination(pod.UID, "process://late", v1.ContainerStateTerminated{}); !errors.Is(err, ErrUnknownPod) {
		w.Errorf("ObserveTermination of a pod that is gone: got %v, want %v", err, ErrUnknownPod)
	}
	if err := w.manager.SetPodAllocation(pod); !errors.Is(err, ErrUnknownPod) {
		w.Errorf("SetPodAllocation of a pod that is gone: got %v, want %v", err, ErrUnknownPod)
	}
	w.manager.Resizes().SetPodResizePendingCondition(pod.UID, v1.PodReasonDeferred, "", 1)
	w.set(pod, ended(pod, 137))
	must(w.manager.TerminatePod(pod))
	synctest.Wait()
}

// embedderReplaced is created again under its name while the watch is interrupted, and the pod
// that took its name is deleted in the same way.
func embedderReplaced(w *world, pod *v1.Pod) {
	w.report(pod, running(pod, true))
	w.api.OnRemove(nil)
	w.api.Remove(pod.Namespace, pod.Name)
	w.api.OnRemove(func(pod *v1.Pod) { w.manager.EventHandler().OnDelete(pod) })
	next := w.create(pod.Name, restartNever, func(p *v1.Pod) { p.UID = pod.UID + "-next" })
	if _, err := w.manager.SetPodStatus(pod, ended(pod, 1)); !errors.Is(err, ErrUnknownPod) {
		w.Errorf("SetPodStatus of a former UID: got %v, want %v", err, ErrUnknownPod)
	}
	if err := w.manager.TerminatePod(pod); !errors.Is(err, ErrUnknownPod) {
		w.Errorf("TerminatePod of a former UID: got %v, want %v", err, ErrUnknownPod)
	}
	finished(w, next)
}

// embedderStatic is a static pod with a mirror, beside an ordinary pod.
func embedderStatic(w *world, pod *v1.Pod) {
	static := newPod(pod.Name+"-static", staticPod)
	w.manager.ObservePod(static)
	w.set(static, running(static, true))
	mirror := w.api.Put(mirrorOf(static, static.UID+"-mirror"))
	synctest.Wait()
	if got := w.api.Pod(mirror); got.Status.Phase != v1.PodRunning {
		w.Errorf("the mirror is %s, want Running", got.Status.Phase)
	}
	w.set(static, ended(static, 0))
	must(w.manager.TerminatePod(static))
	synctest.Wait()
	w.api.Remove(mirror.Namespace, mirror.Name)
	w.manager.ObserveDelete(static)
	finished(w, pod)
}

// The end of a pod that exists in the API is kept, whatever is deleted beside it.
func TestADeletionForgetsThePodOfItsUIDOnly(t *testing.T) {
	stale := func(pod *v1.Pod) any {
		old := pod.DeepCopy()
		old.ResourceVersion, old.Labels = "1", map[string]string{"stale": "yes"}
		return toolscache.DeletedFinalStateUnknown{Key: "ns/" + pod.Name, Obj: old}
	}
	for name, deletes := range map[string]func(h toolscache.ResourceEventHandler, old, pod, mirror *v1.Pod){
		"late, of the UID that had the name before": func(h toolscache.ResourceEventHandler, old, _, _ *v1.Pod) { h.OnDelete(old) },
		"missed, with a stale object":               func(h toolscache.ResourceEventHandler, old, _, _ *v1.Pod) { h.OnDelete(stale(old)) },
		"of a mirror":                               func(h toolscache.ResourceEventHandler, _, _, mirror *v1.Pod) { h.OnDelete(mirror) },
		"without an object": func(h toolscache.ResourceEventHandler, _, _, _ *v1.Pod) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "ns/web"})
			h.OnDelete(nil)
		},
		"as an update of the informer": func(h toolscache.ResourceEventHandler, old, pod, _ *v1.Pod) { h.OnUpdate(old, pod) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := journal.NewMemory()
				w := newEmbedder(t, withJournal(memory))
				old := newPod("web", restartNever, func(p *v1.Pod) { p.UID = "old" })
				w.manager.ObservePod(old)
				pod := w.create("web", restartNever)
				static := newPod("etcd", staticPod)
				w.manager.ObservePod(static)
				mirror := w.api.Put(mirrorOf(static, "mirror"))
				w.run()
				w.api.SetFault(statustest.Always(statustest.ErrRefused))
				w.set(pod, ended(pod, 1))
				w.set(static, running(static, true))
				deletes(w.manager.EventHandler(), old, pod, mirror)
				synctest.Wait()
				for _, known := range []*v1.Pod{pod, static} {
					if _, ok := w.manager.GetPodStatus(known.UID); !ok {
						t.Errorf("the status of %s is forgotten", known.Name)
					}
				}
				if _, kept := memory.Finals()[pod.UID]; !kept {
					t.Error("the journal's copy of the end is gone")
				}
				w.api.SetFault(nil)
				time.Sleep(time.Minute)
				if got := w.api.Pod(pod).Status.Phase; got != v1.PodFailed {
					t.Errorf("the API says %s, want Failed", got)
				}
			})
		})
	}
}

// A missed deletion is a deletion: the stale object has the UID of the pod that is gone.
func TestAMissedDeletionForgetsThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newEmbedder(t, withJournal(memory))
		pod := w.create("web", restartNever)
		w.run()
		w.api.SetFault(statustest.Always(statustest.ErrRefused))
		w.report(pod, ended(pod, 1))
		w.api.OnRemove(nil)
		w.api.Remove("ns", "web")
		w.manager.EventHandler().OnDelete(toolscache.DeletedFinalStateUnknown{Key: "ns/web", Obj: pod})
		synctest.Wait()
		w.wantNothingLeft(memory)
	})
}

// The list that the manager starts with may be older than the watch: a pod of it that is gone
// must not come back into the table.
func TestTheFirstListBringsNoPodBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEmbedder(t)
		pod := w.create("web")
		w.manager.ObserveDelete(pod) // while the list is under way
		w.run()
		wantEmptyMaps(t, w.manager.table)
	})
}

// A report may come before the watch has shown the pod. It is not lost, and the pod not forgotten.
func TestAReportBeforeTheWatchIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEmbedder(t)
		w.api.OnStore(nil)
		pod := w.api.Put(newPod("web", restartNever))
		w.run()
		w.report(pod, running(pod, true))
		if got := w.api.Pod(pod).Status.Phase; got != v1.PodRunning {
			t.Errorf("the API says %s, want Running", got)
		}
		w.manager.EventHandler().OnAdd(w.api.Pod(pod), true)
		if _, ok := w.manager.GetPodStatus(pod.UID); !ok {
			t.Error("the pod is forgotten")
		}
	})
}

// What a request in flight brings back is nothing that could be stored.
func TestForgetWhileAWriteIsInFlight(t *testing.T) {
	for name, answer := range map[string]error{"accepted": nil, "refused": statustest.ErrRefused, "not found": statustest.NotFromServer(statustest.Request{Verb: "PATCH", Name: "ns/web"})} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := journal.NewMemory()
				w := newEmbedder(t, withJournal(memory))
				pod := w.create("web", restartNever)
				w.run()
				release := make(chan struct{})
				w.api.SetFault(func(_ context.Context, s statustest.Request) error {
					if s.Verb != "PATCH" {
						return nil
					}
					<-release
					return answer
				})
				w.report(pod, ended(pod, 1))
				w.manager.ObserveDelete(pod)
				close(release)
				w.api.OnStore(nil) // the watch has ended the pod's life already
				synctest.Wait()
				w.wantNothingLeft(memory)
				w.wantNothingPending()
			})
		})
	}
}

// Reports, observations and deletions of one pod from many goroutines leave a manager that can
// forget it.
func TestForgetRacesWithReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newEmbedder(t, withJournal(memory))
		pod := w.create("web", restartNever)
		w.run()
		var all sync.WaitGroup
		for _, act := range []func(){
			func() { w.manager.SetPodStatus(pod, running(pod, true)) },
			func() { w.manager.SetPodStatus(pod, running(pod, false)) },
			func() { w.manager.TerminatePod(pod) },
			func() { w.manager.ObservePod(pod) },
			func() { w.manager.ObserveDelete(pod) },
			func() { w.manager.Forget(pod.UID) },
		} {
			all.Go(func() {
				for range 200 {
					act()
				}
			})
		}
		all.Wait()
		w.api.OnStore(nil)
		w.api.Remove("ns", "web")
		w.manager.ObserveDelete(pod)
		time.Sleep(time.Minute)
		w.wantNothingLeft(memory)
	})
}

// With a table of the caller's own, the manager leaves that to the caller.
func TestTheCallersTableIsTheCallers(t *testing.T) {
	w := newWorld(t)
	pod := newPod("web")
	w.manager.ObservePod(pod)
	if got := w.table.All(); len(got) > 0 {
		t.Errorf("ObservePod has put %s into the table", got[0].Name)
	}
	w.table.Set(pod)
	w.manager.ObserveDelete(pod)
	if got := w.table.All(); !reflect.DeepEqual(got, []*v1.Pod{pod}) {
		t.Errorf("ObserveDelete has left %d pods in the table, want 1", len(got))
	}
}

// A pod that waits for a try half a minute away is out of the queue at once, and so is the end
// that the disk did not take.
func TestAForgottenPodIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newEmbedder(t, withJournal(brokenJournal{memory}))
		turns := w.countTurns()
		pod := w.create("web", restartNever)
		w.run()
		w.api.SetFault(statustest.Always(statustest.DeniedByWebhook(400, "BadRequest")))
		if _, err := w.manager.SetPodStatus(pod, ended(pod, 1)); !errors.Is(err, errDiskFull) {
			t.Fatalf("got %v, want %v", err, errDiskFull)
		}
		time.Sleep(5 * time.Minute)
		w.manager.ObserveDelete(pod)
		synctest.Wait()
		w.wantNothingLeft(memory)
		turns.Store(0)
		time.Sleep(time.Hour)
		if got := turns.Load(); got > 0 {
			t.Errorf("%d turns for a pod that is forgotten", got)
		}
	})
}
