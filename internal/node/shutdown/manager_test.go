package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/announced"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPod(name string, priority int32) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Priority: &priority}}
}

func TestPlanEndsCriticalPodsLast(t *testing.T) {
	pods := []*v1.Pod{newPod("critical", 2_000_001_000), newPod("ordinary", 0), newPod("high", 1_000_000_000), {ObjectMeta: metav1.ObjectMeta{Name: "none"}}}
	for _, c := range []struct {
		grace, critical time.Duration
		want            string
	}{
		{30 * time.Second, 10 * time.Second, "ordinary high none 20s, critical 10s"},
		{5 * time.Second, 10 * time.Second, "ordinary high none 0s, critical 5s"},
	} {
		var got []string
		for _, group := range Plan(pods, c.grace, c.critical) {
			var names []string
			for _, pod := range group.Pods {
				names = append(names, pod.Name)
			}
			got = append(got, fmt.Sprintf("%s %v", strings.Join(names, " "), group.Within))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%v with %v for critical pods: got %q, want %q", c.grace, c.critical, got, c.want)
		}
	}
}

// world is a node with pods that take a while to end, and a host. It notes what happens and when.
type world struct {
	begin time.Time
	takes map[string]time.Duration // by pod
	pods  []*v1.Pod

	mu        sync.Mutex // guards what follows
	notes     []string
	announce  chan bool
	deaf      error // why the host cannot be heard
	locks     int   // that are held
	permitted time.Duration
}

func newWorld(takes map[string]time.Duration, pods ...*v1.Pod) *world {
	return &world{begin: time.Now(), takes: takes, pods: pods, announce: make(chan bool), permitted: time.Minute}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fmt.Sprintf("%v ", time.Since(w.begin))+fmt.Sprintf(format, args...))
}

func (w *world) manager() *Manager {
	var m *Manager
	m = New(Options{
		Grace: 30 * time.Second, Critical: 10 * time.Second,
		Pods: func() []*v1.Pod { return w.pods },
		End: func(pod *v1.Pod, grace time.Duration) <-chan struct{} {
			w.note("end %s in %v", pod.Name, grace)
			done := make(chan struct{})
			time.AfterFunc(w.takes[pod.Name], func() { close(done) })
			return done
		},
		Undo:    func() { w.note("undo") },
		Changed: func(context.Context) { w.note("node: %v", m.Err()) },
		Settle:  func(context.Context) error { w.note("settle"); return nil },
		Host:    w,
		Logger:  slog.New(slog.DiscardHandler),
	})
	return m
}

func (w *world) Announcements(ctx context.Context) (<-chan bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf != nil {
		return nil, w.deaf
	}
	return announced.Shutdowns(ctx, w.announce), nil
}

func (w *world) Delay(context.Context) (time.Duration, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locks++
	return w.permitted, sync.OnceFunc(func() {
		w.note("let go")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.locks--
	}), nil
}

func (w *world) held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.locks
}

// want compares what has happened; things of one moment have no order.
func (w *world) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := slices.Clone(w.notes)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	w.notes = nil
}

// run runs the manager in a bubble.
func run(t *testing.T, w func() *world, tell func(*world, *Manager)) {
	synctest.Test(t, func(t *testing.T) {
		w := w()
		m := w.manager()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		tell(w, m)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if w.held() != 0 {
			t.Errorf("%d locks are held after the end", w.held())
		}
		time.Sleep(time.Hour) // virtual: what pods have under way ends
	})
}

func TestAnAnnouncedShutdownEndsPodsInOrderAndIsThenLetGo(t *testing.T) {
	run(t, func() *world {
		return newWorld(map[string]time.Duration{"web": 5 * time.Second, "stubborn": time.Hour, "dns": 2 * time.Second},
			newPod("dns", criticalPriority), newPod("web", 0), newPod("stubborn", 0))
	}, func(w *world, m *Manager) {
		w.announce <- true
		synctest.Wait()
		if !errors.Is(m.Err(), ErrShuttingDown) || w.held() != 1 {
			t.Errorf("got %v and %d locks, want that the node shuts down and the machine waits", m.Err(), w.held())
		}
		time.Sleep(time.Minute)
		w.want(t, "0s end web in 20s", "0s end stubborn in 20s", "0s node: node is shutting down",
			"20s end dns in 10s", "22s settle", "22s let go")
	})
}

// A shutdown that is canceled while pods end leaves a node that is ready, with a new lock.
func TestACanceledShutdownIsUndone(t *testing.T) {
	run(t, func() *world {
		return newWorld(map[string]time.Duration{"stubborn": time.Hour}, newPod("stubborn", 0))
	}, func(w *world, m *Manager) {
		w.announce <- true
		time.Sleep(5 * time.Second)
		w.announce <- false
		synctest.Wait()
		if m.Err() != nil || w.held() != 1 {
			t.Errorf("got %v and %d locks, want a node as before and one lock", m.Err(), w.held())
		}
		w.want(t, "0s end stubborn in 20s", "0s node: node is shutting down", "5s settle", "5s undo", "5s node: <nil>", "5s let go")
		w.announce <- true // and again
		synctest.Wait()
		if m.Err() == nil {
			t.Error("the second shutdown is not seen")
		}
	})
}

// The time is what the host allows, if that is less than what is configured.
func TestTheHostBoundsTheTime(t *testing.T) {
	run(t, func() *world {
		w := newWorld(map[string]time.Duration{"stubborn": time.Hour}, newPod("stubborn", 0))
		w.permitted = 15 * time.Second
		return w
	}, func(w *world, _ *Manager) {
		w.announce <- true
		time.Sleep(time.Minute)
		w.want(t, "0s end stubborn in 2s", "0s node: node is shutting down", "2s settle", "2s let go")
	})
}

// A host that is lost is looked for again; without one only Drain ends pods.
func TestAHostThatIsLostIsLookedForAgain(t *testing.T) {
	run(t, func() *world {
		w := newWorld(nil)
		w.deaf = errors.New("no bus")
		return w
	}, func(w *world, m *Manager) {
		time.Sleep(10 * time.Minute)
		w.mu.Lock()
		w.deaf = nil
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if w.held() != 1 {
			t.Errorf("%d locks, want one: the host can be heard again", w.held())
		}
		close(w.announce)
		synctest.Wait()
		if w.held() != 0 {
			t.Errorf("%d locks, want none of a host that is lost", w.held())
		}
		w.mu.Lock()
		w.announce = make(chan bool)
		w.mu.Unlock()
	})
}

// A shutdown that was canceled while the host could not be heard is undone once it says so.
func TestAShutdownThatWasCanceledUnheardIsUndone(t *testing.T) {
	run(t, func() *world {
		return newWorld(map[string]time.Duration{"stubborn": time.Hour}, newPod("stubborn", 0))
	}, func(w *world, m *Manager) {
		w.announce <- true
		synctest.Wait()
		again := make(chan bool)
		w.mu.Lock()
		lost := w.announce
		w.announce = again
		w.mu.Unlock()
		close(lost)
		time.Sleep(5 * time.Second)
		if m.Err() == nil {
			t.Error("a host that is lost has canceled the shutdown")
		}
		again <- false
		synctest.Wait()
		if m.Err() != nil || w.held() != 1 {
			t.Errorf("got %v and %d locks, want a node as before and one lock", m.Err(), w.held())
		}
	})
}

// A node that an operator has drained stays so, whatever the host says of shutdowns.
func TestTheHostUndoesNoDrainOfAnOperator(t *testing.T) {
	run(t, func() *world { return newWorld(nil) }, func(w *world, m *Manager) {
		if err := m.Drain(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, begins := range []bool{false, true, true, false} {
			w.announce <- begins
			synctest.Wait()
			if m.Err() == nil {
				t.Fatalf("the drain is undone by %t", begins)
			}
		}
		if w.held() != 1 {
			t.Errorf("%d locks, want one for the next shutdown", w.held())
		}
		m.Cancel()
	})
}

// A node that has nothing to end is reported as shutting down all the same, and a server that hangs does not hold it up.
func TestANodeWithoutPodsIsReported(t *testing.T) {
	for _, c := range []struct{ answers, took time.Duration }{{time.Second, time.Second}, {time.Hour, settleTime}} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var err error
			m := New(Options{Pods: func() []*v1.Pod { return nil }, Changed: func(ctx context.Context) {
				select {
				case <-ctx.Done():
					err = ctx.Err()
				case <-time.After(c.answers):
				}
			}})
			if err := m.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != c.took || (err == nil) != (c.answers < settleTime) {
				t.Errorf("a server that answers after %v: %v after %v, want an end after %v", c.answers, err, took, c.took)
			}
		})
	}
}

func TestDrainWithoutAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(map[string]time.Duration{"web": 5 * time.Second}, newPod("web", 0))
		m := w.manager()
		if err := m.Drain(t.Context()); err != nil || time.Since(w.begin) != 5*time.Second {
			t.Errorf("got %v after %v, want that all pods have ended", err, time.Since(w.begin))
		}
		if err := m.Drain(t.Context()); err != nil || !errors.Is(m.Err(), ErrShuttingDown) {
			t.Errorf("got %v and %v, want that the node stays drained", err, m.Err())
		}
		m.Cancel()
		m.Cancel()
		if m.Err() != nil {
			t.Errorf("got %v after the drain was undone", m.Err())
		}
		w.want(t, "0s end web in 20s", "0s node: node is shutting down", "5s settle", "5s undo", "5s node: <nil>")
		m.Close()
	})
}
