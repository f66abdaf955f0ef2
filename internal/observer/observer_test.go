package observer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/history"
)

// A container ends while the kubelet is frozen: what the API says is not true any more. Report, metrics,
// history and explanation say so; when the kubelet goes on and reports it, it is over. Nothing is written.
func TestDriftIsFoundShownAndResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		uid := w.add("web")
		w.add("db")
		o := w.observer(nil)
		stop := w.run(o)
		time.Sleep(3 * time.Minute) // nothing has happened
		if found := drift(o); len(found) > 0 {
			t.Fatalf("%q on a node where all is well", found)
		}
		w.freeze(true)
		w.kill("web")
		time.Sleep(30 * time.Second)
		found := drift(o)
		if len(found) == 0 || slices.ContainsFunc(found, func(s string) bool { return strings.HasSuffix(s, " db") }) {
			t.Fatalf("drift %q, want that of pod web", found)
		}
		pod, ok := answers{o}.Pod(uid)
		why := explain.Pod(pod.Facts)
		if !ok || len(why.NotTrue) == 0 || !strings.HasPrefix(why.Sentence(time.UTC), "What the API says of pod shop/web is not true since ") {
			t.Errorf("the explanation is %q", why.Sentence(time.UTC))
		}
		kind := audit.Kind(why.NotTrue[0].Code)
		if got := testutil.ToFloat64(o.metrics.detected.WithLabelValues(string(kind))); got != 1 {
			t.Errorf("%v drifts of kind %s are counted, want 1", got, kind)
		}

		w.freeze(false)
		w.report("web")
		time.Sleep(30 * time.Second)
		if found := drift(o); len(found) > 0 {
			t.Errorf("drift %q though the kubelet has reported", found)
		}
		past, _ := o.console.Source().History("shop", "web")
		var drifts []string
		for _, r := range past.Records {
			if r.Kind == history.KindDrift && r.Subject == string(kind) {
				drifts = append(drifts, r.From+">"+r.To)
			}
		}
		if want := []string{"difference>drift", "drift>resolved"}; !slices.Equal(drifts, want) {
			t.Errorf("the history has %q, want %q: %+v", drifts, want, past.Records)
		}
		stop()
		for _, action := range w.client.Actions() {
			t.Errorf("the observer has done %s %s by default", action.GetVerb(), action.GetResource().Resource)
		}
	})
}

// What the pods report becomes their history, accepted when the API has it.
func TestTheHistoryHasWhatPodsReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("web")
		o := w.observer(nil)
		stop := w.run(o)
		defer stop()
		time.Sleep(time.Second)
		w.kill("web")
		if p, _ := (answers{o}).Pod("uid-web"); p.Facts.Delivery == nil || p.Facts.Delivery.Accepted != p.Facts.Delivery.Version {
			t.Errorf("the delivery is %+v, want all accepted", p.Facts.Delivery)
		}
		w.report("web")
		time.Sleep(time.Second)
		past, ok := o.console.Source().History("shop", "web")
		if !ok {
			t.Fatal("there is no history")
		}
		i := slices.IndexFunc(past.Records, func(r history.Record) bool { return r.Kind == history.KindContainer && r.To == "terminated" })
		if i < 0 || past.Records[i].From != "running" || past.Records[i].Accepted == nil {
			t.Errorf("the end of the container is not in the history: %+v", past.Records)
		}
		w.mu.Lock()
		clear(w.api)
		clear(w.kubelet)
		clear(w.runtime)
		clear(w.sandboxes)
		w.mu.Unlock()
		w.changed(audit.SideAPI, "uid-web")
		time.Sleep(time.Second)
		if gone := o.console.Source().Gone(); len(gone) != 1 || gone[0].Name != "web" {
			t.Errorf("gone are %+v", gone)
		}
	})
}

// A change of one side has the others asked sooner than their pace.
func TestAChangeHasTheOthersAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("web")
		o := w.observer(nil)
		stop := w.run(o)
		defer stop()
		w.kill("web")
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.refreshed[audit.SideKubelet] == 0 || w.refreshed[audit.SideMachine] == 0 {
			t.Errorf("asked again were %v", w.refreshed)
		}
	})
}

// An observer that is started again goes on where the last one stopped: drift that is still there is not
// announced again, and drift that is over meanwhile is.
func TestARestartAnnouncesNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("web")
		w.add("db")
		dir := t.TempDir()
		on := func(c *Config) { c.StateDir, c.Outputs.Events = dir, true }
		first := w.observer(on)
		stop := w.run(first)
		time.Sleep(3 * time.Minute)
		w.freeze(true)
		w.kill("web")
		w.kill("db")
		time.Sleep(30 * time.Second)
		before := drift(first)
		stop()
		w.freeze(false)
		w.report("db")
		w.freeze(true)
		w.client.ClearActions()
		second := w.observer(on)
		stop = w.run(second)
		time.Sleep(20 * time.Second)
		after := drift(second)
		stop()
		if len(before) < 2 || !slices.ContainsFunc(after, func(s string) bool { return strings.HasSuffix(s, " web") }) {
			t.Fatalf("drift was %q and is %q", before, after)
		}
		said := map[string]int{}
		for _, e := range w.events() {
			if said[e.InvolvedObject.Name+e.Reason+e.Message]++; said[e.InvolvedObject.Name+e.Reason+e.Message] > 1 || e.Count > 1 {
				t.Errorf("announced again: %s", e.Message)
			}
		}
		for _, want := range []string{"StatusDriftResolved db"} {
			if !slices.ContainsFunc(w.events(), func(e v1.Event) bool { return e.Reason+" "+e.InvolvedObject.Name == want }) {
				t.Errorf("there is no event %s", want)
			}
		}
	})
}

// The same for an observer that is killed: what it leaves on the disk is what it had there at that moment.
func TestAKilledObserverAnnouncesNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("web")
		dir, left := t.TempDir(), t.TempDir()
		first := w.observer(func(c *Config) { c.StateDir, c.Outputs.Events = dir, true })
		stop := w.run(first)
		time.Sleep(3 * time.Minute)
		w.freeze(true)
		w.kill("web")
		var seen time.Time
		for seen.IsZero() {
			time.Sleep(100 * time.Millisecond)
			for _, d := range first.view.Load().report.Differences {
				if d.Drift {
					seen = d.Seen
				}
			}
		}
		synctest.Wait()
		data, err := os.ReadFile(filepath.Join(dir, auditFile))
		if err == nil {
			err = os.WriteFile(filepath.Join(left, auditFile), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		stop()
		before := len(w.events())
		second := w.observer(func(c *Config) { c.StateDir, c.Outputs.Events = left, true })
		stop = w.run(second)
		time.Sleep(20 * time.Second) // its lease still counts
		after := second.view.Load().report.Differences
		stop()
		if len(after) != 1 || !after[0].Drift || !after[0].Seen.Equal(seen) {
			t.Errorf("it was first seen at %v, and is %+v", seen, after)
		}
		if events := w.events(); before == 0 || len(events) != before {
			t.Errorf("%d events before the end, then %+v", before, events)
		}
	})
}

// events are those that were written.
func (w *world) events() []v1.Event {
	w.t.Helper()
	list, err := w.client.CoreV1().Events("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}
