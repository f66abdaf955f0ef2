package status

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownTable makes the manager keep its table itself.
func ownTable(o *Options) { o.Pods = nil }

// rebuilt is a pod as a provider has it that knows pods by name alone.
func rebuilt(pod *v1.Pod) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Spec: pod.Spec}
}

// Two pods are reported without UIDs, as by a provider of virtual-kubelet.
func TestReportWithoutUID_IsFoundByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ownTable)
		a, b := w.create("a", restartNever), w.create("b", restartNever)
		w.manager.ObservePod(a)
		w.manager.ObservePod(b)
		w.run()
		w.set(rebuilt(a), ended(a, 0))
		w.set(rebuilt(b), running(b, true))
		if err := w.manager.TerminatePod(rebuilt(a)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := w.api.Pod(a).Status.Phase; got != v1.PodSucceeded {
			t.Errorf("the API says %s of a", got)
		}
		if got := w.api.Pod(b).Status.Phase; got != v1.PodRunning {
			t.Errorf("the API says %s of b", got)
		}
		if got := len(w.manager.Statuses()); got != 2 {
			t.Errorf("the manager has %d statuses, want 2", got)
		}
	})
}

// What cannot be found is refused, and the error names the field.
func TestReportWithoutUID_OfAnUnknownPodIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Options){"own table": ownTable, "table of the caller": func(*Options) {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, change)
				pod := rebuilt(newPod("unknown"))
				w.manager.ObservePod(pod) // says nothing of any pod
				_, err := w.manager.SetPodStatus(pod, running(pod, true))
				for _, err := range []error{err, w.manager.TerminatePod(pod)} {
					if !errors.Is(err, ErrNoUID) || IsWarning(err) {
						t.Errorf("got %v, want ErrNoUID", err)
					}
				}
				if got := w.manager.Statuses(); len(got) != 0 {
					t.Errorf("stored: %+v", got)
				}
			})
		})
	}
}

// A pod was deleted and created again under its name: what is reported of the first one is refused.
func TestReportOfAFormerUID_IsErrUnknownPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ownTable)
		first := w.create("web")
		w.manager.ObservePod(first)
		w.run()
		w.set(first, running(first, true))
		synctest.Wait()
		w.api.Remove(first.Namespace, first.Name)
		time.Sleep(time.Second)
		second := newPod("web", func(p *v1.Pod) { p.UID = "second" })
		second = w.api.Put(second)
		w.manager.ObservePod(second)
		if changed, err := w.manager.SetPodStatus(first, ended(first, 1)); changed || !errors.Is(err, ErrUnknownPod) {
			t.Errorf("got %v, %v, want ErrUnknownPod", changed, err)
		}
		w.set(second, running(second, true))
		synctest.Wait()
		if got := w.api.Pod(second).Status.Phase; got != v1.PodRunning {
			t.Errorf("the API says %s", got)
		}
	})
}

// The handler that reports may be called before the one that feeds the manager.
func TestReportOfALaterUID_IsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ownTable)
		w.api.OnStore(nil)
		first := w.create("web")
		w.manager.ObservePod(first)
		w.run()
		w.api.Remove(first.Namespace, first.Name)
		second := w.api.Put(newPod("web", func(p *v1.Pod) { p.UID = types.UID("second") }))
		w.set(second, running(second, true))
		synctest.Wait()
		if got := w.api.Pod(second).Status.Phase; got != v1.PodRunning {
			t.Errorf("the API says %s", got)
		}
	})
}
