package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
	"github.com/statusd/statusd/internal/view"
)

// live is a scene whose changes are announced.
type live struct {
	mu sync.Mutex // guards all of it
	*scene.Scene
	announce func(types.UID)
	began    time.Time
}

func newLive() *live { return &live{Scene: scene.New(time.Now()), began: time.Now()} }

// put makes something known now, and returns when the engine has looked at it: changes of one pod that come
// faster than that are looked at once.
func (l *live) put(t *testing.T, what map[string]any) {
	t.Helper()
	l.tell(t, what)
	synctest.Wait()
}

func (l *live) tell(t *testing.T, what map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	changed, err := l.Take(scene.Step{At: time.Since(l.began), What: what})
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range changed {
		if l.announce != nil {
			l.announce(uid)
		}
	}
}

func (l *live) UIDs() []types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Scene.UIDs()
}

func (l *live) Pod(uid types.UID) (view.Pod, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Now = time.Now()
	return l.Scene.Pod(uid)
}

func (l *live) History(namespace, name string) (view.PodHistory, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Scene.History(namespace, name)
}

func (l *live) Node() view.NodeDetail {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Scene.Node()
}

func (l *live) Watch(ctx context.Context, changed func(types.UID)) error {
	l.mu.Lock()
	l.announce = changed
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.announce = nil
	return nil
}

// phase is a pod in a phase.
func phase(name, phase string) map[string]any {
	return map[string]any{"pod": map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": phase}}}
}

// sink notes what it gets. It has delivered it at once, unless it holds it back.
type sink struct {
	name  string
	began time.Time
	mu    sync.Mutex // guards the fields below
	got   []string
	holds bool
	done  []func()
}

func (s *sink) Name() string { return s.name }

func (s *sink) Notify(n Notification) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%v %s %s", n.At.Sub(s.began.Round(0)), n.Alert.Rule, n.Alert.State)
	if n.Alert.Pod != "" {
		text += " " + n.Alert.Pod
	}
	if n.Again {
		text += " again"
	}
	if n.Alert.Silenced != "" {
		text += " silenced"
	}
	s.got = append(s.got, text)
	if s.holds {
		s.done = append(s.done, n.Done)
		return
	}
	n.Done()
}

// take returns what came since the last call.
func (s *sink) take() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := strings.Join(s.got, "\n")
	s.got = nil
	return got
}

const rulesForTests = `
apiVersion: statusd/v1alpha1
kind: Rules
groups:
  - name: tests
    rules:
      - {name: Failed, expr: pod.phase == "Failed", for: 10s, severity: warning, labels: {team: "{{ pod.name }}s"}, annotations: {summary: "{{ pod.name }} has failed"}}
      - {name: Kept, expr: pod.phase == "Unknown", keepFiringFor: 20s, severity: info}
`

func parsed(t testing.TB, text string) *ruleset.Set {
	t.Helper()
	set, err := ruleset.Parse("rules.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// started runs an engine until the function that it returns is called.
func started(t *testing.T, options Options) (*Engine, func()) {
	t.Helper()
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	synctest.Wait()
	return e, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

func TestAnAlertFiresAfterItsTimeAndResolves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		e, stop := started(t, Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, Node: "n"})
		defer stop()
		node.put(t, phase("web", "Failed"))
		synctest.Wait()
		if alerts := e.Alerts(); len(alerts) != 1 || alerts[0].State != alert.Pending {
			t.Errorf("at once: got %+v", alerts)
		}
		time.Sleep(9 * time.Second)
		expect(t, "too early", out.take(), "")
		time.Sleep(time.Second)
		expect(t, "in time", out.take(), "10s Failed firing web")
		alerts := e.Alerts()
		if len(alerts) != 1 || alerts[0].Labels["team"] != "webs" || alerts[0].Annotations["summary"] != "web has failed" || alerts[0].Labels["node"] != "n" {
			t.Errorf("got %+v", alerts)
		}
		time.Sleep(time.Second)
		node.put(t, phase("web", "Running"))
		expect(t, "over", out.take(), "11s Failed resolved web")
		if alerts := e.Alerts(); len(alerts) != 1 || alerts[0].State != alert.Resolved {
			t.Errorf("after its end it is shown for a while: got %+v", alerts)
		}
		time.Sleep(recentFor + time.Second)
		if alerts := e.Alerts(); len(alerts) != 0 {
			t.Errorf("later: got %+v", alerts)
		}
	})
}

func TestKeepFiringForOutlastsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		_, stop := started(t, Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}})
		defer stop()
		node.put(t, phase("web", "Unknown"))
		expect(t, "at once", out.take(), "0s Kept firing web")
		node.put(t, phase("web", "Running"))
		time.Sleep(15 * time.Second)
		node.put(t, phase("web", "Unknown"))
		time.Sleep(15 * time.Second)
		node.put(t, map[string]any{"gone": "web"})
		time.Sleep(19 * time.Second)
		expect(t, "kept", out.take(), "")
		time.Sleep(time.Second)
		expect(t, "over", out.take(), "50s Kept resolved web")
	})
}

// Before the pods are known a restored alert is not taken for one whose pod is gone.
func TestARestartKeepsAlertsAndTellsWhatIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "alerts")
		node := newLive()
		began := time.Now()
		slow, quick := &sink{name: "slow", began: began, holds: true}, &sink{name: "quick", began: began}
		options := Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{slow, quick}, StateFile: file}
		node.put(t, phase("a", "Failed"))
		node.put(t, phase("b", "Failed"))
		node.put(t, phase("c", "Unknown"))
		_, stop := started(t, options)
		time.Sleep(8 * time.Second)
		stop() // the output slow has delivered nothing
		expect(t, "slow", slow.take(), "0s Kept firing c")
		expect(t, "quick", quick.take(), "0s Kept firing c")

		time.Sleep(time.Hour)
		node.put(t, map[string]any{"gone": "b"})
		node.put(t, map[string]any{"gone": "c"})
		ready := make(chan struct{})
		options.Ready = ready
		e, stop := started(t, options)
		expect(t, "not ready", slow.take()+quick.take(), "")
		if len(e.Alerts()) != 3 {
			t.Errorf("restored: got %+v", e.Alerts())
		}
		close(ready)
		expect(t, "slow gets again what it had not delivered", slow.take(), "1h0m8s Kept firing c\n1h0m8s Failed firing a")
		expect(t, "quick is reminded", quick.take(), "1h0m8s Kept firing c again\n1h0m8s Failed firing a")
		time.Sleep(20 * time.Second)
		expect(t, "over while it was down", quick.take(), "1h0m28s Kept resolved c")
		stop()
		slow.take()

		// The end of c was not delivered by slow.
		_, stop = started(t, options)
		expect(t, "slow", slow.take(), "1h0m28s Kept resolved c\n1h0m28s Failed firing a")
		expect(t, "quick", quick.take(), "1h0m28s Kept resolved c again\n1h0m28s Failed firing a again")
		for _, done := range slow.done {
			done()
		}
		synctest.Wait()
		stop()
		_, stop = started(t, options)
		defer stop()
		expect(t, "nothing is owed", slow.take(), "1h0m28s Failed firing a again")
	})
}

// A rule that is taken away while nothing runs takes its alerts with it, also those of pods that are gone.
func TestARestartWithOtherRulesResolves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		options := Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, StateFile: filepath.Join(t.TempDir(), "alerts")}
		node.put(t, phase("a", "Unknown"))
		node.put(t, phase("b", "Unknown"))
		node.put(t, phase("c", "Failed"))
		_, stop := started(t, options)
		stop()
		out.take()
		node.put(t, map[string]any{"gone": "b"})
		options.Set = parsed(t, strings.NewReplacer("Kept", "Other", "Failed,", "Gone,", "keepFiringFor: 20s", "for: 1h").Replace(rulesForTests))
		e, stop := started(t, options)
		defer stop()
		expect(t, "resolved", out.take(), "0s Kept firing a again\n0s Kept firing b again\n0s Kept resolved a\n0s Kept resolved b")
		for _, a := range e.Alerts() {
			if a.Rule == "Failed" {
				t.Errorf("is left: %+v", a)
			}
		}
	})
}

func TestSilences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		options := Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, StateFile: filepath.Join(t.TempDir(), "alerts")}
		e, stop := started(t, options)
		s, err := e.Silence(alert.Silence{Matchers: []alert.Matcher{{Name: "pod", Value: "we.", IsRegex: true, IsEqual: true}}, Until: time.Now().Add(time.Minute)})
		if err != nil || s.ID == "" {
			t.Fatalf("got %+v, %v", s, err)
		}
		node.put(t, phase("web", "Unknown"))
		node.put(t, phase("other", "Unknown"))
		expect(t, "silenced", out.take(), "0s Kept firing other")
		for _, a := range e.Alerts() {
			if (a.Pod == "web") != (a.Silenced == s.ID) {
				t.Errorf("got %+v", a)
			}
		}
		stop()
		e, stop = started(t, options) // it survives
		defer stop()
		expect(t, "after a restart", out.take(), "0s Kept firing other again")
		if list := e.Silences(); len(list) != 1 || list[0].ID != s.ID {
			t.Errorf("got %+v", list)
		}
		time.Sleep(time.Minute)
		expect(t, "its end", out.take(), "1m0s Kept firing web")
		if len(e.Silences()) != 0 || e.Expire(s.ID) == nil {
			t.Error("it has ended")
		}
		s, _ = e.Silence(alert.Silence{Matchers: []alert.Matcher{{Name: "alertname", Value: "Failed", IsEqual: false}}, Until: time.Now().Add(time.Hour)})
		node.put(t, phase("third", "Unknown"))
		expect(t, "all but Failed", out.take(), "1m0s Kept firing other again silenced\n1m0s Kept firing web again silenced")
		if err := e.Expire(s.ID); err != nil {
			t.Error(err)
		}
		expect(t, "expired", out.take(), "1m0s Kept firing other again\n1m0s Kept firing web again\n1m0s Kept firing third")
		for _, wrong := range []alert.Silence{
			{Until: time.Now().Add(time.Hour)},
			{Matchers: []alert.Matcher{{Name: "a", Value: "(", IsRegex: true}}, Until: time.Now().Add(time.Hour)},
			{Matchers: []alert.Matcher{{Name: "a"}}, Until: time.Now()},
		} {
			if _, err := e.Silence(wrong); err == nil {
				t.Errorf("%+v was taken", wrong)
			}
		}
	})
}

// A rule that is the same keeps its alerts when rules are reloaded; the alerts of others are over.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		e, stop := started(t, Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}})
		defer stop()
		node.put(t, phase("web", "Failed"))
		node.put(t, phase("other", "Unknown"))
		time.Sleep(5 * time.Second)
		expect(t, "before", out.take(), "0s Kept firing other")
		e.Reload(parsed(t, strings.NewReplacer(`pod.phase == "Unknown"`, `pod.phase == "Failed"`, "has failed", "is broken").Replace(rulesForTests)))
		expect(t, "another expression", out.take(), "5s Kept resolved other\n5s Kept firing web")
		time.Sleep(5 * time.Second)
		expect(t, "it has been pending all the time", out.take(), "10s Failed firing web")
		e.Reload(parsed(t, strings.NewReplacer(`pod.phase == "Unknown"`, `pod.phase == "Failed"`, "for: 10s", "for: 1s", "warning", "critical").Replace(rulesForTests)))
		expect(t, "other labels", out.take(), "10s Failed resolved web")
		time.Sleep(time.Second)
		expect(t, "are another alert", out.take(), "11s Failed firing web")
		if err := e.ReloadWith(func() (*ruleset.Set, error) { return ruleset.Parse("x", []byte("kind: Rule")) }); err == nil {
			t.Error("a broken file was taken")
		}
		node.put(t, phase("web", "Running"))
		time.Sleep(20 * time.Second)
		expect(t, "the rules in force stay", out.take(), "11s Failed resolved web\n31s Kept resolved web")
	})
}

// What has been pending for a while has not been pending for an hour because the clock was set.
func TestAClockThatJumpsMakesNothingPendingLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		e, err := New(Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var jump time.Duration
		plain := e.clock
		e.clock = func() (time.Time, time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			now, monotonic := plain()
			return now.Add(jump), monotonic
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		node.put(t, phase("web", "Failed"))
		for i, by := range []time.Duration{time.Hour, -2 * time.Hour} {
			node.put(t, phase("web", "Failed"))
			time.Sleep(5 * time.Second)
			mu.Lock()
			jump += by
			mu.Unlock()
			node.put(t, phase("more", "Running"))
			time.Sleep(4 * time.Second)
			expect(t, "not yet", out.take(), "")
			time.Sleep(time.Second)
			if got := out.take(); !strings.Contains(got, "Failed firing web") {
				t.Errorf("%d: got %q", i, got)
			}
			node.put(t, phase("web", "Running"))
			if got := out.take(); !strings.Contains(got, "Failed resolved web") {
				t.Errorf("%d: got %q", i, got)
			}
		}
	})
}

// Alerts are bounded.
func TestThereAreNoMoreAlertsThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, out := newLive(), &sink{name: "out", began: time.Now()}
		e, stop := started(t, Options{Source: node, Set: parsed(t, rulesForTests), Outputs: []Output{out}, MaxAlerts: 3})
		defer stop()
		for i := range 10 {
			node.put(t, phase(fmt.Sprint("web-", i), "Unknown"))
		}
		synctest.Wait()
		if got := len(e.Alerts()); got != 3 {
			t.Errorf("got %d alerts", got)
		}
		out.take()
		node.put(t, phase("web-0", "Running"))
		time.Sleep(20 * time.Second)
		expect(t, "room", out.take(), "20s Kept resolved web-0")
		time.Sleep(restFor)
		if got := out.take(); !strings.Contains(got, "Kept firing web-") {
			t.Errorf("one that had no room does not fire when there is some: got %q", got)
		}
	})
}

// deaf is a source whose watch fails.
type deaf struct{ *live }

func (deaf) Watch(context.Context, func(types.UID)) error { return errors.New("connection lost") }

// An engine that hears nothing any more does not go on as if nothing happened.
func TestAWatchThatEndsEndsTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Source: deaf{newLive()}, Set: parsed(t, rulesForTests)})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "connection lost") {
			t.Errorf("got %v", err)
		}
	})
}
