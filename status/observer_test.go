package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/statustest"
)

// diary is an observer that remembers.
type diary struct {
	mu      sync.Mutex
	lines   []string
	changes []podstatus.Change
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func (d *diary) Changed(c podstatus.Change) {
	d.write("%s %s v%d %s→%s first=%v", c.By, c.Name, c.Version, c.Old.Phase, c.New.Phase, c.First)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes = append(d.changes, c)
}

func (d *diary) Accepted(uid types.UID, version uint64, _ time.Time) {
	d.write("accepted %s v%d", uid, version)
}

func (d *diary) Failed(u podstatus.Undelivered) {
	d.write("failed %s v%d try %d %s %s %s", u.UID, u.Version, u.Tries, u.Reason, u.Waits, u.Writer)
}

func (d *diary) Removed(uid types.UID, _ time.Time) { d.write("removed %s", uid) }

func (d *diary) want(t *testing.T, story string, want ...string) {
	t.Helper()
	if got := d.take(); !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", story, strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

func TestAnObserverLearnsOfEveryStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &diary{}
		w := newWorld(t, func(o *Options) { o.Observer = seen })
		pod := w.create("web")
		// Three steps that no subscription would show one by one, and a report without news.
		status := running(pod, false)
		w.set(pod, status)
		w.set(pod, status)
		must(w.manager.SetContainerReadiness(pod.UID, "process://web-uid", true))
		must(w.manager.SetContainerReadiness(pod.UID, "process://web-uid", false))
		seen.want(t, "reports", "SetPodStatus web v1 Pending→Running first=true",
			"SetContainerReadiness web v2 Running→Running first=false", "SetContainerReadiness web v3 Running→Running first=false")

		w.api.SetFault(func(_ context.Context, r statustest.Request) error {
			if r.Verb == "PATCH" {
				return statustest.ErrRefused
			}
			return nil
		})
		w.run()
		pass(time.Second)
		d, ok := w.manager.Delivery(pod.UID)
		if !ok || d.Version != 3 || d.Accepted != 0 || d.Attempts == 0 || d.Error == "" || !d.AcceptedAt.IsZero() || d.Since.IsZero() {
			t.Errorf("delivery while the server refuses connections: got %+v", d)
		}
		if lines := seen.take(); len(lines) == 0 || lines[0] != "failed web-uid v3 try 1 unreachable  " {
			t.Errorf("tries that failed: got %q", lines)
		}
		w.api.SetFault(nil)
		pass(time.Minute)
		if lines := seen.take(); !slices.Equal(lines, []string{"accepted web-uid v3"}) {
			t.Errorf("after the server is back: got %q", lines)
		}
		if d, _ := w.manager.Delivery(pod.UID); d.Accepted != 3 || d.AcceptedAt.IsZero() || d.Attempts != 0 || !d.Since.IsZero() {
			t.Errorf("delivery: got %+v", d)
		}
		w.manager.RemoveOrphanedStatuses(nil)
		seen.want(t, "removal", "removed web-uid")
		if _, ok := w.manager.Delivery(pod.UID); ok {
			t.Error("a removed pod has a delivery")
		}
	})
}

// What an observer got never changes, whatever the reporter does with what it has passed in.
func TestWhatAnObserverGotNeverChanges(t *testing.T) {
	seen := &diary{}
	manager, err := New(Options{Observer: seen})
	must(err)
	pod := newPod("web")
	status := running(pod, true)
	if _, err := manager.SetPodStatus(pod, status); err != nil {
		t.Fatal(err)
	}
	old, next := seen.changes[0].Old.DeepCopy(), seen.changes[0].New.DeepCopy()
	pod.Status.Phase = v1.PodFailed
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: "x"})
	status.Conditions[0].Status = v1.ConditionUnknown
	status.ContainerStatuses[0].Name = "other"
	manager.SetPodStatus(newPod("web"), running(pod, false))
	if c := seen.changes[0]; c.Old.String() != old.String() || c.New.String() != next.String() {
		t.Errorf("got %v and %v, want %v and %v", c.Old, c.New, old, next)
	}
}

func TestAnObserverLearnsOfAFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &diary{}
		w, pod := newWorld(t, func(o *Options) { o.Observer = seen }).runWith("web")
		var controller sync.WaitGroup
		w.api.OnStore(func(p *v1.Pod) {
			w.deliver(p)
			if p.Status.Message != "mine" {
				controller.Go(func() {
					w.api.Change(pod, func(p *v1.Pod) {
						now := metav1.Now()
						p.Status.Message = "mine"
						p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other", Time: &now, Subresource: "status"}}
					})
				})
			}
		})
		w.set(pod, running(pod, true))
		pass(10 * time.Minute)
		if !slices.ContainsFunc(seen.take(), func(line string) bool { return strings.HasSuffix(line, " other") }) {
			t.Error("the observer does not know of the fight")
		}
		if d, _ := w.manager.Delivery(pod.UID); d.Writer != "other" || d.Rounds < fightRounds {
			t.Errorf("delivery: got writer %q, %d rounds", d.Writer, d.Rounds)
		}
		w.stop()
		controller.Wait()
	})
}

// A report without news costs no allocation, observer or not.
func TestAReportWithoutNewsAllocatesNothing(t *testing.T) {
	manager, err := New(Options{Observer: &diary{}})
	must(err)
	pod := newPod("web")
	status := running(pod, true)
	manager.SetPodStatus(pod, status)
	if got := testing.AllocsPerRun(100, func() { manager.SetPodStatus(pod, status) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
