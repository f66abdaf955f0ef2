package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/history"
)

// kubelet is a fake: a service and the evidence about it, in virtual time.
type kubelet struct {
	name     string
	mu       sync.Mutex
	process  guard.Process
	apiDown  bool
	runtime  guard.Answer
	leased   time.Time
	restarts []time.Time
	// restart is what becomes of a restart: nil: it runs again.
	restart error
	down    bool // the machine shuts down
	// stuck is since when it works and does not renew its lease, whoever starts it; writes is what the API server answers to a dry run.
	stuck   time.Time
	writes  guard.Answer
	watched func()
}

func newKubelet() *kubelet {
	return &kubelet{name: "kubelet.service", process: guard.Process{Exists: true, Sure: true, PID: 1, Started: time.Now().Add(-time.Hour)}, runtime: guard.Answer{Answered: true, OK: true}}
}

// Name is that of a service.
func (k *kubelet) Name() string { return k.name }

// State is that of a service.
func (k *kubelet) State(context.Context) (guard.Process, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process, nil
}

// Start is that of a service.
func (k *kubelet) Start(ctx context.Context) error { return k.Restart(ctx) }

// Stop is that of a service.
func (k *kubelet) Stop(context.Context) error { return nil }

// Restart is that of a service.
func (k *kubelet) Restart(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restarts = append(k.restarts, time.Now())
	if k.restart == nil {
		k.process = guard.Process{Exists: true, Sure: true, PID: k.process.PID + 1, Started: time.Now()}
	}
	return k.restart
}

// Watch is that of a watcher.
func (k *kubelet) Watch(ctx context.Context, changed func()) error {
	k.mu.Lock()
	k.watched = changed
	k.mu.Unlock()
	<-ctx.Done()
	return nil
}

// kill ends the process.
func (k *kubelet) kill(code int) {
	k.mu.Lock()
	k.process = guard.Process{Sure: true, PID: 0, ExitCode: &code, Ended: time.Now()}
	k.leased = time.Now()
	watched := k.watched
	k.mu.Unlock()
	if watched != nil {
		watched()
	}
}

// end replaces what its supervisor knows of the process.
func (k *kubelet) end(p guard.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.process = p
}

// deadlock makes it work and not renew its lease, though the API server accepts writes.
func (k *kubelet) deadlock() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stuck, k.writes = time.Now(), accepted
}

func (k *kubelet) collect(context.Context) guard.Evidence {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	e := well(now)
	e.Process = guard.Read(now, k.process)
	e.Runtime = guard.Read(now, k.runtime)
	e.ShuttingDown = guard.Read(now, k.down)
	e.Certificate = guard.Read(now, now.Add(time.Hour))
	if !k.process.Exists || k.process.Stopped {
		e.Healthz = guard.Read(now, silent("connection refused"))
		e.Parts, e.PLEG = nil, guard.NotKnown[guard.PLEG](now, "no answer")
		e.Lease.Value.Renewed, e.Lease.Value.Seen = k.leased, k.leased
	}
	if !k.stuck.IsZero() {
		e.Lease.Value.Renewed, e.Lease.Value.Seen = k.stuck, k.stuck
		e.Writes = guard.Read(now, k.writes)
	}
	if k.apiDown {
		apiDown(&e, now, now)
	}
	return e
}

func (k *kubelet) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.restarts)
}

// notices is an output that remembers.
type notices struct {
	mu   sync.Mutex
	list []guard.Notice
}

// Notify is that of an output.
func (n *notices) Notify(notice guard.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, notice)
}

func (n *notices) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, notice := range n.list {
		if notice.Kind != guard.NoticeReport {
			all = append(all, string(notice.Kind))
		}
	}
	return strings.Join(all, " ")
}

// run runs a guard in virtual time.
func run(t *testing.T, options func(*kubelet, *guard.Options), story func(t *testing.T, k *kubelet, g *guard.Guard, told *notices)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k, told := newKubelet(), &notices{}
		o := guard.Options{Kubelet: k, Collect: k.collect, Policy: guard.DefaultPolicy(), Outputs: []guard.Output{told}}
		o.Policy.Restart = true
		if options != nil {
			options(k, &o)
		}
		g, err := guard.New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		story(t, k, g, told)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAKubeletThatEndsIsRestarted(t *testing.T) {
	for _, code := range []int{0, 1} { // node-problem-detector #861: 0 too
		var records []history.Record
		registry := prometheus.NewRegistry()
		run(t, func(_ *kubelet, o *guard.Options) {
			o.Record = func(r history.Record) { records = append(records, r) }
			o.Registerer = registry
		}, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
			time.Sleep(time.Minute)
			if r := g.Report(); r.Health != guard.Healthy || r.PID != 1 || r.Unit != "kubelet.service" {
				t.Errorf("at first: %+v", r)
			}
			k.kill(code)
			killed := time.Now()
			time.Sleep(10 * time.Second)
			if k.count() != 1 || k.restarts[0].Sub(killed) > 5*time.Second {
				t.Fatalf("exit code %d: %d restarts, want one within 5 s", code, k.count())
			}
			time.Sleep(10 * time.Second) // until the new process has renewed the lease
			if got := told.String(); got != "KubeletUnhealthy KubeletRestarted KubeletHealthy" {
				t.Errorf("told %s", got)
			}
			r := g.Report()
			if len(r.Restarts) != 1 || r.Restarts[0].By != "guard" || r.Restarts[0].Reason != guard.ProcessGone || r.Restarts[0].Err != "" {
				t.Errorf("got %+v", r.Restarts)
			}
			if got := testutil.ToFloat64(mustCounter(t, registry)); got != 1 {
				t.Errorf("counted %v restarts", got)
			}
			var story []string
			for _, r := range records {
				story = append(story, r.To)
			}
			if got := strings.Join(story, ", "); got != "healthy, unhealthy, restarted, degraded, healthy" {
				t.Errorf("recorded %s", got)
			}
		})
	}
}

// slowly is a kubelet whose restart takes a while.
type slowly struct {
	*kubelet
	takes time.Duration
}

// Restart is that of a service.
func (s slowly) Restart(ctx context.Context) error {
	time.Sleep(s.takes)
	return s.kubelet.Restart(ctx)
}

func TestEvidenceOfBeforeARestartCausesNoOther(t *testing.T) {
	run(t, func(k *kubelet, o *guard.Options) {
		o.Policy.FirstPause, o.Policy.CoolDown = time.Second, time.Second
		o.Kubelet = slowly{k, 2 * time.Second}
		o.Collect = func(ctx context.Context) guard.Evidence {
			defer time.Sleep(3 * time.Second) // the slowest source
			return k.collect(ctx)
		}
	}, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		time.Sleep(time.Minute)
		if r := g.Report(); k.count() != 1 || r.Health != guard.Healthy {
			t.Errorf("%d restarts, and it is %s; want one, and healthy", k.count(), r.Health)
		}
	})
}

// mustCounter is the counter of restarts, as a collector of one series.
func mustCounter(t *testing.T, registry *prometheus.Registry) prometheus.Collector {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "found"})
	for _, f := range families {
		if f.GetName() == "statusd_kubelet_restarts_total" {
			for _, m := range f.GetMetric() {
				counter.Add(m.GetCounter().GetValue())
			}
		}
	}
	return counter
}

// A kubelet that does not come up is tried again with growing pauses, until the budget is used up.
func TestRestartsHaveABudget(t *testing.T) {
	run(t, func(k *kubelet, _ *guard.Options) { k.restart = errors.New("exit status 1") }, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		time.Sleep(50 * time.Minute)
		if k.count() != 5 {
			t.Fatalf("%d restarts within an hour, want 5", k.count())
		}
		for i, least := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
			if pause := k.restarts[i+1].Sub(k.restarts[i]); pause < least || pause > least+10*time.Second {
				t.Errorf("pause %d is %v, want %v", i+1, pause, least)
			}
		}
		r := g.Report()
		if !strings.HasPrefix(r.Withheld, "5 restarts within the last hour") || r.NextRestart.IsZero() || r.Restarts[4].Err != "exit status 1" {
			t.Errorf("got %q, next %v, %+v", r.Withheld, r.NextRestart, r.Restarts[4])
		}
		if !strings.Contains(told.String(), "KubeletRestartSuppressed") {
			t.Errorf("told %s", told)
		}
		time.Sleep(time.Hour)
		if k.count() < 6 {
			t.Error("after an hour there is no budget again")
		}
	})
}

func TestNothingIsRestartedWhile(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*kubelet, *guard.Options)
		want string
	}{
		{"restarts are not allowed", func(_ *kubelet, o *guard.Options) { o.Policy.Restart = false }, "restarts are not allowed"},
		{"the node shuts down", func(k *kubelet, _ *guard.Options) { k.down = true }, "the node is shutting down"},
		{"the runtime is down", func(k *kubelet, _ *guard.Options) { k.runtime = silent("connection refused") }, "a restart would not help"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, c.make, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
				time.Sleep(time.Minute)
				k.kill(1)
				time.Sleep(time.Minute)
				r := g.Report()
				if k.count() != 0 || r.Health != guard.Unhealthy || !strings.HasPrefix(r.Withheld, c.want) {
					t.Errorf("%d restarts, %s, withheld %q", k.count(), r.Health, r.Withheld)
				}
				if !strings.Contains(told.String(), "KubeletUnhealthy") || !strings.Contains(told.String(), "KubeletRestartSuppressed") {
					t.Errorf("told %s", told)
				}
			})
		})
	}
}

func TestAnAPIServerThatIsDownRestartsNothing(t *testing.T) {
	run(t, nil, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
		time.Sleep(time.Minute)
		k.mu.Lock()
		k.apiDown = true
		k.mu.Unlock()
		time.Sleep(time.Hour)
		r := g.Report()
		if k.count() != 0 || r.Health != guard.Degraded || r.Withheld != "a restart would not help" || !strings.HasPrefix(r.Do, "bring back the API server") {
			t.Errorf("%d restarts, %s, withheld %q, do %q", k.count(), r.Health, r.Withheld, r.Do)
		}
		if got := told.String(); got != "KubeletRestartSuppressed" {
			t.Errorf("told %s, want it once", got)
		}
	})
}

func TestMaintenanceSurvivesARestartAndEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.json")
	state := func(_ *kubelet, o *guard.Options) { o.StateFile = file }
	begin := time.Time{}
	run(t, state, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		begin = time.Now()
		if err := g.Maintenance(time.Now().Add(30 * time.Minute)); err != nil {
			t.Fatal(err)
		}
	})
	run(t, state, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) { // virtual time begins again at the same instant
		time.Sleep(time.Minute)
		k.kill(1)
		time.Sleep(20 * time.Minute)
		if r := g.Report(); k.count() != 0 || !strings.HasPrefix(r.Withheld, "maintenance until") || !r.Maintenance.Equal(begin.Add(30*time.Minute)) {
			t.Errorf("%d restarts, withheld %q, maintenance until %v", k.count(), r.Withheld, r.Maintenance)
		}
		time.Sleep(10 * time.Minute)
		if r := g.Report(); k.count() != 1 || !r.Maintenance.IsZero() {
			t.Errorf("after the maintenance: %d restarts, %v", k.count(), r.Maintenance)
		}
		if err := g.Maintenance(time.Now().Add(time.Hour)); err != nil || g.Report().Maintenance.IsZero() {
			t.Error("no maintenance")
		}
		if err := g.Maintenance(time.Time{}); err != nil || !g.Report().Maintenance.IsZero() {
			t.Error("it does not end")
		}
	})
}

func TestRestartsOfTheLastHourSurviveARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.json")
	options := func(k *kubelet, o *guard.Options) { o.StateFile, k.restart = file, errors.New("exit status 1") }
	run(t, options, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		time.Sleep(40 * time.Minute)
		if k.count() != 5 {
			t.Fatalf("%d restarts", k.count())
		}
	})
	run(t, options, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		if got := len(g.Report().Restarts); got != 5 {
			t.Fatalf("%d restarts after a restart of the guard, want 5", got)
		}
		k.kill(1)
		time.Sleep(20 * time.Minute)
		if k.count() != 0 {
			t.Errorf("a restart of the guard has made room for %d more", k.count())
		}
	})
}

func TestADamagedStateCostsNothingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.json")
	if err := os.WriteFile(file, []byte(`{"version":1,"state":`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, func(_ *kubelet, o *guard.Options) { o.StateFile = file }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		if r := g.Report(); r.Health != guard.Healthy {
			t.Errorf("got %+v", r)
		}
	})
}

// Rules restart within the same policy.
func TestARestartThatIsAskedFor(t *testing.T) {
	run(t, nil, func(t *testing.T, k *kubelet, g *guard.Guard, told *notices) {
		time.Sleep(time.Minute)
		if err := g.Restart(t.Context(), "StuckForAnHour"); err != nil {
			t.Fatal(err)
		}
		if r := g.Report().Restarts; k.count() != 1 || r[0].By != "rule" || r[0].Reason != "StuckForAnHour" || told.String() != "KubeletRestarted" {
			t.Errorf("got %+v, told %s", r, told)
		}
		if err := g.Restart(t.Context(), "StuckForAnHour"); !errors.Is(err, guard.ErrWithheld) || k.count() != 1 {
			t.Errorf("a second one at once: %v", err)
		}
		if err := g.Maintenance(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		if err := g.Restart(t.Context(), "StuckForAnHour"); !errors.Is(err, guard.ErrWithheld) || !strings.Contains(fmt.Sprint(err), "maintenance") {
			t.Errorf("got %v", err)
		}
		if r := g.Report(); r.Health != guard.Healthy {
			t.Errorf("a restart that was asked for makes it %s: %v", r.Health, r.Reasons)
		}
	})
}

func TestMetricsOfChecks(t *testing.T) {
	registry := prometheus.NewRegistry()
	run(t, func(k *kubelet, o *guard.Options) { o.Registerer, o.Policy.Restart = registry, false }, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(time.Minute)
		k.kill(1)
		time.Sleep(30 * time.Second)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
		if got["process"] != 0 || got["healthz"] != 0 || got["runtime"] != 1 || got["unhealthy"] != 1 || got["healthy"] != 0 {
			t.Errorf("got %v", got)
		}
		if _, known := got["pleg"]; known {
			t.Error("a check that is not known has a value")
		}
	})
}

// A clock that was set back while the guard did not run: restarts that are in the future count, but not for longer than
// others do.
func TestRestartsInTheFutureHoldNothingBackForLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guard.json")
	// Each run begins at the same time of a virtual clock: what the first one writes is in the future of the second.
	options := func(k *kubelet, o *guard.Options) { o.StateFile = file }
	run(t, options, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(24 * time.Hour)
		k.kill(1)
		time.Sleep(10 * time.Second)
		if k.count() != 1 {
			t.Fatalf("%d restarts", k.count())
		}
		k.mu.Lock()
		k.restart = errors.New("exit status 1")
		k.mu.Unlock()
		k.kill(1)
		time.Sleep(20 * time.Second)
	})
	run(t, options, func(t *testing.T, k *kubelet, g *guard.Guard, _ *notices) {
		time.Sleep(30 * time.Second)
		if r := g.Report(); r.Health != guard.Healthy {
			t.Fatalf("what the guard saw by another clock makes the kubelet %+v", r.Verdict)
		}
		time.Sleep(2 * time.Minute)
		k.kill(1)
		time.Sleep(2 * time.Minute)
		if k.count() != 1 {
			t.Errorf("%d restarts within two minutes, want 1: %+v", k.count(), g.Report())
		}
	})
}
