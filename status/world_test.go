package status

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/statustest"
)

// world is a manager with its fake API and its table of pods, inside a synctest bubble.
type world struct {
	*testing.T
	api      *statustest.Server
	table    *pods.Table
	manager  *Manager
	registry *prometheus.Registry
	stop     func()
}

// newWorld makes a manager whose watch works: what the API stores is observed. Run is not
// called yet.
func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{T: t, api: statustest.New(), table: pods.New(), registry: prometheus.NewRegistry()}
	options := Options{Client: w.api, Pods: w.table, Registerer: w.registry, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&options)
	}
	manager, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w.manager = manager
	w.api.OnStore(w.deliver)
	return w
}

// runWith runs with one pod, which is made before.
func (w *world) runWith(name string, edits ...func(*v1.Pod)) (*world, *v1.Pod) {
	w.Helper()
	pod := w.create(name, edits...)
	w.run()
	return w, pod
}

// report sets a status and waits until nothing is left to be done about it now.
func (w *world) report(pod *v1.Pod, status v1.PodStatus) {
	w.Helper()
	w.set(pod, status)
	synctest.Wait()
}

// pass lets virtual time pass, and waits until nothing is left to be done at its end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// refusing refuses the requests of one kind.
func refusing(verb string, err error) func(context.Context, statustest.Request) error {
	return func(_ context.Context, s statustest.Request) error {
		if s.Verb == verb {
			return err
		}
		return nil
	}
}

// deliver is the watch: the table first, then the manager.
func (w *world) deliver(pod *v1.Pod) {
	w.table.Set(pod)
	w.manager.ObservePod(pod)
}

// run starts Run; it is stopped, and checked to have stopped, when the test ends.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- w.manager.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.Errorf("Run returned %v, want nil", err)
			}
		})
	}
	w.Cleanup(w.stop)
	synctest.Wait()
	w.api.ForgetRequests()
}

// create puts a pod into the API and the table.
func (w *world) create(name string, edits ...func(*v1.Pod)) *v1.Pod {
	w.Helper()
	pod := newPod(name, edits...)
	w.api.Put(pod)
	pod = w.api.Pod(pod)
	w.table.Set(pod)
	return pod
}

// set reports a status. That a phase is withheld is no failure of it.
func (w *world) set(pod *v1.Pod, status v1.PodStatus) {
	w.Helper()
	_, err := w.manager.SetPodStatus(pod, status)
	if _, withheld := errors.AsType[*WithheldError](err); err != nil && !withheld {
		w.Errorf("SetPodStatus(%s): %v", pod.Name, err)
	}
}

// wantLog compares the requests so far and forgets them.
func (w *world) wantLog(story string, want ...string) {
	w.Helper()
	synctest.Wait()
	if got := w.api.Log(); !slices.Equal(got, want) {
		w.Errorf("%s:\n got requests %s\nwant requests %s", story, list(got), list(want))
	}
	w.api.ForgetRequests()
}

func list(lines []string) string {
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, ", ")
}

func (w *world) wantNothingPending() {
	w.Helper()
	if pending := w.manager.Pending(); len(pending) > 0 {
		w.Errorf("still pending: %+v", pending)
	}
}

// counter returns the sum of a counter over all labels.
func (w *world) counter(name string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		total := 0.0
		for _, m := range family.GetMetric() {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
		return total
	}
	w.Fatalf("there is no metric %s", name)
	return 0
}
