package nodedown

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/test/announced"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a fake of logind, of the API and of a kubelet, which notes what happens and when.
type machine struct {
	begin  time.Time
	atMost time.Duration
	hangs  bool          // the API server
	takes  time.Duration // a start
	// timeless: times are not noted, as those of tries at random times.
	timeless bool

	mu            sync.Mutex // guards what follows
	announcements chan bool  // closed: the bus is restarted
	story         []string
}

func (m *machine) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.timeless {
		what = fmt.Sprintf("%v %s", time.Since(m.begin), what)
	}
	m.story = append(m.story, what)
}

func (m *machine) bus() chan bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.announcements
}

func (m *machine) announce(begins bool) { m.bus() <- begins }

// restartBus lets listeners lose the bus, and find it again when they try.
func (m *machine) restartBus() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.announcements)
	m.announcements = make(chan bool)
}

func (m *machine) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.story, ", ")
}

// Announcements is that of a host.
func (m *machine) Announcements(ctx context.Context) (<-chan bool, error) {
	return announced.Shutdowns(ctx, m.bus()), nil
}

// Delay is that of a host.
func (m *machine) Delay(context.Context) (time.Duration, func(), error) {
	m.note("delayed")
	return m.atMost, sync.OnceFunc(func() { m.note("goes on") }), nil
}

func (m *machine) say(ctx context.Context) error {
	m.note("not ready")
	if m.hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

// stop takes 2 s, as a kubelet that ends in order may.
func (m *machine) stop(ctx context.Context) error {
	select {
	case <-ctx.Done():
		m.note("killed")
		return ctx.Err()
	case <-time.After(2 * time.Second):
		m.note("stopped")
		return nil
	}
}

// start takes as long as a kubelet takes to register.
func (m *machine) start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		m.note("not started")
		return ctx.Err()
	case <-time.After(m.takes):
		m.note("started")
		return nil
	}
}

func TestShutdowns(t *testing.T) {
	for _, c := range []struct {
		name   string
		make   func(*machine, *Options)
		happen func(*machine, *Watch)
		want   string
	}{
		{"the kubelet is stopped in order", nil, func(m *machine, _ *Watch) { m.announce(true) },
			"0s delayed, 0s not ready, 2s stopped, 2s not ready, 2s goes on"},
		{"the kubelet ends pods first", func(_ *machine, o *Options) { o.Grace = 3 * time.Second }, func(m *machine, _ *Watch) { m.announce(true) },
			"0s delayed, 0s not ready, 5s stopped, 5s not ready, 5s goes on"},
		{"an API server that hangs costs the kubelet no time", func(m *machine, _ *Options) { m.hangs = true }, func(m *machine, _ *Watch) { m.announce(true) },
			"0s delayed, 0s not ready, 2s stopped, 9s not ready, 9s goes on"},
		{"all within the time that logind gives", func(m *machine, o *Options) { m.atMost, o.Grace = 3*time.Second, time.Minute }, func(m *machine, _ *Watch) { m.announce(true) },
			"0s delayed, 0s not ready, 2.7s killed, 2.7s not ready, 2.7s goes on"},
		{"canceled before the kubelet was stopped", nil, func(m *machine, _ *Watch) {
			m.announce(true)
			time.Sleep(time.Second)
			m.announce(false)
		}, "0s delayed, 0s not ready, 1s killed, 1s not ready, 1s goes on, 1s delayed, 2s started"},
		{"canceled afterwards, and then another one", nil, func(m *machine, w *Watch) {
			m.announce(true)
			time.Sleep(5 * time.Second)
			if !w.Under() {
				m.note("not under")
			}
			m.announce(false)
			time.Sleep(5 * time.Second)
			if w.Under() {
				m.note("still under")
			}
			m.announce(true)
		}, "0s delayed, 0s not ready, 2s stopped, 2s not ready, 2s goes on, 5s delayed, 6s started, 10s not ready, 12s stopped, 12s not ready, 12s goes on"},
		{"another one while the kubelet starts", func(m *machine, _ *Options) { m.takes = time.Minute }, func(m *machine, w *Watch) {
			m.announce(true)
			time.Sleep(5 * time.Second)
			m.announce(false)
			time.Sleep(5 * time.Second)
			if !w.Under() {
				m.note("not under")
			}
			m.announce(true)
			time.Sleep(time.Second)
			if !w.Under() {
				m.note("not under")
			}
		}, "0s delayed, 0s not ready, 2s stopped, 2s not ready, 2s goes on, 5s delayed, 10s not started, 10s not ready, 12s stopped, 12s not ready, 12s goes on"},
		{"canceled while the bus is restarted", func(m *machine, _ *Options) { m.timeless = true }, func(m *machine, w *Watch) {
			m.announce(true)
			time.Sleep(5 * time.Second)
			m.restartBus()
			time.Sleep(5 * time.Second)
			if !w.Under() {
				m.note("not under")
			}
			m.announce(false) // at first it says how things are
			time.Sleep(2 * time.Second)
			if w.Under() {
				m.note("still under")
			}
		}, "delayed, not ready, stopped, not ready, goes on, delayed, goes on, delayed, started"},
		{"the bus is restarted while the kubelet is stopped", func(m *machine, _ *Options) { m.timeless = true }, func(m *machine, _ *Watch) {
			m.announce(true)
			time.Sleep(100 * time.Millisecond)
			m.restartBus()
			time.Sleep(5 * time.Second)
			m.announce(true)
		}, "delayed, not ready, goes on, delayed, stopped, not ready, goes on"},
		{"canceled, of a kubelet that an operator had stopped before", func(_ *machine, o *Options) { o.Runs = func(context.Context) bool { return false } }, func(m *machine, w *Watch) {
			m.announce(true)
			time.Sleep(5 * time.Second)
			m.announce(false)
			synctest.Wait()
			if w.Under() {
				m.note("still under")
			}
		}, "0s delayed, 0s not ready, 2s stopped, 2s not ready, 2s goes on, 5s delayed"},
		{"nothing is under way", nil, func(m *machine, _ *Watch) { m.announce(false) }, "0s delayed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &machine{begin: time.Now(), announcements: make(chan bool), atMost: 10 * time.Second, takes: time.Second}
				o := Options{Host: m, Say: m.say, Stop: m.stop, Start: m.start}
				if c.make != nil {
					c.make(m, &o)
				}
				w := New(o)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				synctest.Wait()
				c.happen(m, w)
				time.Sleep(time.Minute)
				if got := m.String(); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// deaf is a host that cannot be heard.
type deaf struct{ tries int }

// Announcements is that of a host.
func (d *deaf) Announcements(context.Context) (<-chan bool, error) {
	d.tries++
	return nil, errors.New("no bus")
}

// Delay is that of a host.
func (d *deaf) Delay(context.Context) (time.Duration, func(), error) {
	return 0, nil, errors.New("no bus")
}

func TestAMachineWithoutLogind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &deaf{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		w := New(Options{Host: host})
		if err := w.Run(ctx); err != nil || host.tries < 50 || host.tries > 100 || w.Under() {
			t.Errorf("tried %d times in an hour (%v)", host.tries, err)
		}
	})
}
