package deliver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/statusd/statusd/internal/alert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver answers with err and remembers what it has taken.
type receiver struct {
	mu    sync.Mutex
	err   error
	tries []time.Time
	took  []string
	poor  string // an alert that it does not take
	block chan struct{}
}

func (r *receiver) send(ctx context.Context, batch []alert.Alert) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries = append(r.tries, time.Now())
	if r.block != nil {
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		return ctx.Err()
	}
	for _, alert := range batch {
		if alert.Fingerprint == r.poor {
			return &RefusedError{errors.New("bad label")}
		}
	}
	if r.err != nil {
		return r.err
	}
	for _, alert := range batch {
		r.took = append(r.took, fmt.Sprintf("%s %s", alert.Fingerprint, alert.State))
	}
	return nil
}

func (r *receiver) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *receiver) tried() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tries)
}

func (r *receiver) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.took)
}

// run runs a queue in virtual time until the test ends.
func run(t *testing.T, r *receiver, o Options) (*Queue, *Metrics) {
	t.Helper()
	o.Output, o.Send, o.Metrics = "test", r.send, NewMetrics()
	q := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- q.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return q, o.Metrics
}

func TestAnIdleReceiverGetsAnAlertAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		q, _ := run(t, r, Options{})
		n := firing("a", time.Now())
		done := false
		n.Done = func() { done = true }
		begin := time.Now()
		q.Put(n)
		synctest.Wait()
		if !slices.Equal(r.taken(), []string{"a firing"}) || !time.Now().Equal(begin) || !done {
			t.Errorf("took %q after %v, done %v; want the firing at once", r.taken(), time.Since(begin), done)
		}
	})
}

func TestAnOutageLosesNothingAndIsTriedWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
		q, _ := run(t, r, Options{Repeat: time.Hour})
		q.Put(firing("a", time.Now()))
		time.Sleep(10 * time.Minute)
		q.Put(firing("b", time.Now()))
		time.Sleep(time.Minute)
		if tries := r.tried(); tries < 20 || tries > 40 {
			t.Errorf("%d tries in 11 minutes, want one each 24 to 30 s and a few at the beginning", tries)
		}
		r.set(nil)
		time.Sleep(31 * time.Second)
		if got := r.taken(); !slices.Contains(got, "a firing") || !slices.Contains(got, "b firing") {
			t.Errorf("took %q after the outage, want both alerts", got)
		}
	})
}

func TestAReceiverThatWasAwayGetsAllFiringAlertsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		q, _ := run(t, r, Options{Repeat: time.Hour})
		q.Put(firing("a", time.Now()))
		synctest.Wait()
		r.set(errors.New("EOF"))
		q.Put(firing("b", time.Now()))
		time.Sleep(time.Second)
		r.set(nil)
		time.Sleep(time.Minute)
		if got := strings.Join(r.taken(), ", "); got != "a firing, b firing, a firing" {
			t.Errorf("took %s; want a again, since a receiver that was restarted has forgotten it", got)
		}
	})
}

func TestARefusedAlertKeepsNoOtherFromTheReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{poor: "b", err: errors.New("busy")}
		q, metrics := run(t, r, Options{})
		for _, name := range []string{"a", "b", "c"} {
			q.Put(firing(name, time.Now()))
		}
		time.Sleep(time.Second)
		r.set(nil)
		time.Sleep(time.Minute)
		got := r.taken()
		slices.Sort(got) // what was tried in the outage comes after what was not
		if want := []string{"a firing", "c firing"}; !slices.Equal(got, want) {
			t.Errorf("took %q, want %q", got, want)
		}
		if n := testutil.ToFloat64(metrics.dropped.WithLabelValues("test", DroppedRefused)); n != 1 {
			t.Errorf("%v alerts dropped as refused, want 1", n)
		}
	})
}

func TestAHangingReceiverIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{block: make(chan struct{})}
		q, metrics := run(t, r, Options{Timeout: 5 * time.Second})
		q.Put(firing("a", time.Now()))
		time.Sleep(time.Minute)
		if n := testutil.ToFloat64(metrics.failed.WithLabelValues("test", failedTimeout)); n < 5 {
			t.Errorf("%v timeouts in a minute, want at least 5", n)
		}
	})
}

func TestAReceiverMayAskForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{err: &WaitError{Err: errors.New("429"), For: 20 * time.Second}}
		q, _ := run(t, r, Options{})
		q.Put(firing("a", time.Now()))
		time.Sleep(19 * time.Second)
		synctest.Wait()
		if r.tried() != 1 {
			t.Errorf("%d tries within the pause, want 1", r.tried())
		}
	})
}

func TestFiringAlertsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		q, _ := run(t, r, Options{Repeat: time.Minute})
		q.Put(firing("a", time.Now()))
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		if got := len(r.taken()); got != 4 {
			t.Errorf("sent %d times in 3 minutes, want 4", got)
		}
	})
}

func TestMetricsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{err: errors.New("500")}
		q, metrics := run(t, r, Options{})
		q.Put(firing("a", time.Now()))
		synctest.Wait()
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics)
		want := `
# HELP statusd_notifications_waiting Alerts that wait to be delivered by an output.
# TYPE statusd_notifications_waiting gauge
statusd_notifications_waiting{output="test"} 1
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "statusd_notifications_waiting"); err != nil {
			t.Error(err)
		}
		if n := testutil.ToFloat64(metrics.failed.WithLabelValues("test", failedAnswer)); n != 1 {
			t.Errorf("%v failures, want 1", n)
		}
	})
}

// A request that is canceled may have arrived: its alert would come again after the next start.
func TestQueue_StopDuringARequest_WaitsForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			answer    time.Duration
			delivered bool
		}{{lastAnswer - time.Millisecond, true}, {lastAnswer + time.Millisecond, false}} {
			q := New(Options{Output: "test", Send: func(ctx context.Context, _ []alert.Alert) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(c.answer):
					return nil
				}
			}})
			done := false
			n := firing("a", time.Now())
			n.Done = func() { done = true }
			q.Put(n)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- q.Run(ctx) }()
			synctest.Wait()
			began := time.Now()
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if done != c.delivered {
				t.Errorf("answered after %s: delivered %t, want %t", c.answer, done, c.delivered)
			}
			if took := time.Since(began); took > lastAnswer {
				t.Errorf("the stop took %s, want %s at most", took, lastAnswer)
			}
		}
	})
}
