package observer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/history"
)

// removing is a runtime whose containers can be stopped and removed.
type removing struct{ *world }

func (r removing) Stop(_ context.Context, id string, _ time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.runtime[id]
	c.State = audit.ContainerExited
	r.runtime[id] = c
	return nil
}

func (r removing) Remove(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runtime, id)
	return nil
}

// orphan makes a pod of which only the runtime has something.
func (w *world) orphan(name string) types.UID {
	uid := w.add(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.api, uid)
	delete(w.kubelet, uid)
	return uid
}

func (w *world) has(container string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.runtime[container]
	return ok
}

// A container without a pod is stopped and removed if that is allowed, with an Event, a record and a count; with
// dry run everything but that is done, and the budget bounds both.
func TestAContainerWithoutAPodIsRepaired(t *testing.T) {
	for _, dry := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.add("web")
			for _, name := range []string{"left-1", "left-2", "left-3"} {
				w.orphan(name)
			}
			o := w.observer(func(c *Config) {
				c.Outputs.Events = true
				c.Repair.Kinds, c.Repair.Budget, c.Repair.DryRun = []string{"ContainerWithoutPod"}, 2, dry
			})
			stop := w.run(o)
			time.Sleep(10 * time.Minute)
			stop()
			gone := 0
			for _, name := range []string{"c-left-1", "c-left-2", "c-left-3"} {
				if !w.has(name) {
					gone++
				}
			}
			outcome, want := "repaired", 2 // the budget
			if dry {
				outcome, want = "dry-run", 0
			}
			if gone != want || !w.has("c-web") {
				t.Errorf("dry run %t: %d containers are gone, want %d and not that of pod web", dry, gone, want)
			}
			if n := testutil.ToFloat64(o.metrics.repaired.WithLabelValues("ContainerWithoutPod", outcome)); n != 2 {
				t.Errorf("%v repairs are counted as %s, want 2", n, outcome)
			}
			events := slices.DeleteFunc(w.events(), func(e v1.Event) bool { return e.Reason != "StatusDriftRepaired" })
			if len(events) != 2 || !strings.Contains(events[0].Message, "left-1") {
				t.Errorf("dry run %t: the events are %+v", dry, events)
			}
			past, _ := o.console.Source().History("shop", "left-1")
			if !slices.ContainsFunc(past.Records, func(r history.Record) bool { return r.Kind == history.KindDrift && r.To == outcome }) {
				t.Errorf("dry run %t: the history is %+v", dry, past.Records)
			}
		})
	}
}

// Without the switch nothing is touched, and a restart does not renew the budget.
func TestRepairsAreAllowedOneByOneAndBoundedAcrossRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.orphan("left-1")
		w.orphan("left-2")
		dir := t.TempDir()
		run := func(kinds ...string) {
			t.Helper()
			o := w.observer(func(c *Config) { c.StateDir, c.Repair.Kinds, c.Repair.Budget = dir, kinds, 1 })
			stop := w.run(o)
			time.Sleep(5 * time.Minute)
			stop()
		}
		run("RunningWithoutContainer")
		if !w.has("c-left-1") || !w.has("c-left-2") {
			t.Fatal("repaired what is not allowed")
		}
		run("ContainerWithoutPod")
		run("ContainerWithoutPod")
		if w.has("c-left-1") == w.has("c-left-2") {
			t.Errorf("left-1 is there: %t, left-2: %t; want one, for the budget of one", w.has("c-left-1"), w.has("c-left-2"))
		}
	})
	w := newWorld(t)
	config := Default()
	config.NodeName, config.StateDir, config.HealthzBindAddress, config.QuerySocket = testNode, t.TempDir(), "", "none"
	config.Repair.Kinds = []string{"ContainerWithoutPod"}
	if err := os.WriteFile(filepath.Join(config.StateDir, repairsFile), []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(config, w.options()); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
}
