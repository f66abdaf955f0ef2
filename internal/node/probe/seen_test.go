package probe

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// verdicts is an observer that remembers.
type verdicts struct {
	mu   sync.Mutex
	list []string
}

func (v *verdicts) ProbeVerdict(d Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = append(v.list, fmt.Sprintf("%s/%s %s passed=%v probes=%d", d.Pod.Name, d.Container, d.Kind, d.Passed, d.Probes))
}

func (v *verdicts) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := v.list
	v.list = nil
	return list
}

func one(t *testing.T, list []Result) Result {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("got %d results, want 1: %+v", len(list), list)
	}
	return list[0]
}

func TestResultsAreWhatTheProbesHaveFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &verdicts{}
		w := newWorld(t, func(o *Options) { o.Observer = told })
		w.answer("web", runtime.ReadinessProbe, "failure")
		w.add("web", withHandlers(v1.Container{ReadinessProbe: &v1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 10, FailureThreshold: 3}}))
		began := time.Now()
		w.run("web", "web-1")
		synctest.Wait()

		if r := one(t, w.prober.Results("web")); r.Failures != 0 || r.Decided || !r.NotBefore.Equal(began.Add(5*time.Second)) {
			t.Errorf("before the first probe: got %+v, want one that is due 5 s after the start", r)
		}
		time.Sleep(26 * time.Second) // probes at 5, 15 and 25 s
		synctest.Wait()
		r := one(t, w.prober.Results("web"))
		if r.Failures != 3 || r.Successes != 0 || !r.Decided || r.Passed || r.Answer == "" ||
			!r.Since.Equal(began.Add(5*time.Second)) || !r.At.Equal(began.Add(25*time.Second)) || !r.NotBefore.IsZero() {
			t.Errorf("after three failures: got %+v", r)
		}
		w.answer("web", runtime.ReadinessProbe, "success")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if r := one(t, w.prober.Results("web")); r.Failures != 0 || r.Successes != 1 || !r.Passed || !r.Since.Equal(began.Add(35*time.Second)) {
			t.Errorf("after a success: got %+v", r)
		}
		want := []string{"web/app readiness passed=false probes=3", "web/app readiness passed=true probes=1"}
		if got := told.take(); !slices.Equal(got, want) {
			t.Errorf("verdicts: got %q, want %q", got, want)
		}

		w.restart()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := told.take(); len(got) != 0 {
			t.Errorf("verdicts after a restart of the agent in which nothing changed: got %q, want none", got)
		}
		w.prober.RemovePod("web")
		if got := w.prober.Results("web"); got != nil {
			t.Errorf("results of a removed pod: got %+v", got)
		}
	})
}

func TestAnswersAreKeptWithinBounds(t *testing.T) {
	if got := short(strings.Repeat("é", maxAnswer)); len(got) > maxAnswer+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %q", got)
	}
}
