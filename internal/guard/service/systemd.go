package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/guard"
)

// SystemdOptions configure a [Systemd]. The zero value is the system bus of this machine.
type SystemdOptions struct {
	// Address of the bus; the system bus if empty.
	Address string
	// Proc is where the process file system is mounted; /proc if empty.
	Proc string
}

// Systemd is a unit of systemd, as a [guard.Service]. It is safe for concurrent use.
type Systemd struct {
	unit string
	o    SystemdOptions

	mu   sync.Mutex // guards what follows
	conn *systemd.Conn
	// asked is when the unit was stopped by request, or seen disabled, if none of its processes was seen since. askedOf is when its last process
	// had started, since boot, if the unit was stopped. reset: this program has reset the failed state of the unit since.
	asked   time.Time
	askedOf uint64
	reset   bool
}

// NewSystemd makes the service of a unit. It connects with the first call.
func NewSystemd(unit string, o SystemdOptions) *Systemd {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	return &Systemd{unit: unit, o: o}
}

// Name is the name of the unit.
func (s *Systemd) Name() string { return s.unit }

// Close ends the connection. A later call makes another one.
func (s *Systemd) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// dial makes a connection that is independent of the context of one call.
func (s *Systemd) dial() (*systemd.Conn, error) {
	conn, err := systemd.NewConnection(func() (*dbus.Conn, error) {
		if s.o.Address == "" {
			return dbus.ConnectSystemBus()
		}
		return dbus.Connect(s.o.Address)
	})
	if err != nil {
		return nil, fmt.Errorf("service: connect to systemd: %w", err)
	}
	return conn, nil
}

// connection returns the persistent connection, and reconnects if it was lost.
func (s *Systemd) connection() (*systemd.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.Connected() {
		return s.conn, nil
	}
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	conn, err := s.dial()
	if err != nil {
		return nil, err
	}
	s.conn = conn
	return conn, nil
}

// State implements [guard.Service].
func (s *Systemd) State(ctx context.Context) (guard.Process, error) {
	conn, err := s.connection()
	if err != nil {
		return guard.Process{}, err
	}
	p, err := conn.GetAllPropertiesContext(ctx, s.unit)
	if err != nil {
		return guard.Process{}, fmt.Errorf("service: ask systemd for %s: %w", s.unit, err)
	}
	if text(p, "LoadState") == "not-found" {
		return guard.Process{}, fmt.Errorf("service: systemd has no unit %s", s.unit)
	}
	process := guard.Process{
		Sure:       true,
		Unit:       text(p, "ActiveState") + "/" + text(p, "SubState"),
		Masked:     text(p, "LoadState") == "masked" || text(p, "UnitFileState") == "masked",
		Disabled:   text(p, "UnitFileState") == "disabled",
		Frozen:     text(p, "FreezerState") == "frozen",
		Stopping:   text(p, "ActiveState") == "deactivating",
		Restarting: text(p, "SubState") == "auto-restart" || text(p, "SubState") == "auto-restart-queued",
		Starts:     number[uint32](p, "NRestarts"),
		PID:        int(number[uint32](p, "MainPID")),
		Started:    micros(number[uint64](p, "ExecMainStartTimestamp")),
		Ended:      micros(number[uint64](p, "ExecMainExitTimestamp")),
	}
	process.Exists = process.PID != 0
	if !process.Exists {
		process.Asked = s.stoppedByRequest(p)
	}
	s.remember(&process, number[uint64](p, "ExecMainStartTimestampMonotonic"))
	if !process.Exists {
		process.Starting = !process.Restarting && !process.Stopping && (text(p, "ActiveState") == "activating" || jobWaits(p))
		ended(&process, number[int32](p, "ExecMainCode"), number[int32](p, "ExecMainStatus"))
	}
	return look(process, s.o.Proc, time.Duration(number[uint64](p, "ExecMainStartTimestampMonotonic"))*time.Microsecond), nil
}

// remember keeps that the unit was stopped by request until a process of it runs. systemd forgets how an unreferenced unit has ended, such as a disabled
// unit or a unit whose package was removed: systemd then shows a unit that never ran, started at 0. A change of the unit's Restart= also hides how the
// unit has ended.
func (s *Systemd) remember(p *guard.Process, started uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.Exists:
		s.asked, s.askedOf, s.reset = time.Time{}, 0, false
	case !p.Asked.IsZero():
		s.asked, s.askedOf = p.Asked, started
	case p.Disabled:
		if s.asked.IsZero() {
			s.asked = time.Now()
		}
	case started == 0 || started == s.askedOf:
		p.Asked = s.asked
	default: // another process has run and ended since
		s.asked, s.askedOf = time.Time{}, 0
	}
}

// asked is when systemd was requested to stop the last process, zero if the process ended by itself. A unit that is stopped ceases to be active
// before its process has ended; a unit whose process ends by itself, afterwards. systemd stops a unit by itself after a
// missed watchdog and after a kill for memory.
func asked(p map[string]any) time.Time {
	started, left, ended := number[uint64](p, "ExecMainStartTimestampMonotonic"), number[uint64](p, "ActiveExitTimestampMonotonic"), number[uint64](p, "ExecMainExitTimestampMonotonic")
	result := text(p, "Result")
	if left == 0 || left < started || left >= ended || result == "watchdog" || result == "oom-kill" {
		return time.Time{}
	}
	return micros(number[uint64](p, "ActiveExitTimestamp"))
}

// stoppedByRequest is when an operator or a tool has stopped the unit, zero if the unit has ended by itself.
func (s *Systemd) stoppedByRequest(p map[string]any) time.Time {
	s.mu.Lock()
	reset := s.reset
	s.mu.Unlock()
	if at := asked(p); !at.IsZero() || reset {
		return at
	}
	return givenUp(p)
}

// givenUp is when a unit was requested to stop while systemd waited to start it again, as in a crash loop. The process had ended by itself; then
// the unit is inactive although systemd would restart it, or would call it failed.
func givenUp(p map[string]any) time.Time {
	waited := number[uint64](p, "InactiveExitTimestampMonotonic") > number[uint64](p, "ExecMainExitTimestampMonotonic") && number[uint64](p, "ExecMainExitTimestampMonotonic") > 0
	if text(p, "ActiveState") != "inactive" || !waited || jobWaits(p) {
		return time.Time{}
	}
	if text(p, "Result") == "success" && text(p, "Restart") != "always" {
		return time.Time{}
	}
	return micros(number[uint64](p, "InactiveEnterTimestamp"))
}

// jobWaits reports whether systemd has a job for the unit, as at boot, when it waits for the network. A unit without a
// process that is to be stopped has none.
func jobWaits(properties map[string]any) bool {
	job, _ := properties["Job"].([]any) // its number and its path
	if len(job) == 0 {
		return false
	}
	id, _ := job[0].(uint32)
	return id != 0
}

// ended notes how the last process ended, in the numbers of waitid(2).
func ended(p *guard.Process, code, status int32) {
	switch exit := int(status); code {
	case exited:
		p.ExitCode = &exit
	case killed, dumped:
		p.Signal = signalName(status)
	}
}

// Start implements [guard.Service].
func (s *Systemd) Start(ctx context.Context) error {
	return s.job(ctx, "start", replaceJobs, (*systemd.Conn).StartUnitContext)
}

// Stop implements [guard.Service].
func (s *Systemd) Stop(ctx context.Context) error {
	return s.job(ctx, "stop", replaceJobs, (*systemd.Conn).StopUnitContext)
}

// Restart implements [guard.Service]. A unit that has failed too often is started again, and so is a unit that has ended with exit code 0,
// which systemd does not restart with Restart=on-failure. A job that stops the unit is not replaced.
func (s *Systemd) Restart(ctx context.Context) error {
	conn, err := s.connection()
	if err != nil {
		return err
	}
	// If the unit is not loaded it has not failed, so there is nothing to reset.
	_ = conn.ResetFailedUnitContext(ctx, s.unit)
	s.mu.Lock()
	s.reset = true
	s.mu.Unlock()
	return s.job(ctx, "restart", unlessJobs, (*systemd.Conn).RestartUnitContext)
}

// The modes of jobs: replace cancels conflicting jobs, such as an operator's stop of the unit; fail fails if there is one.
const (
	replaceJobs = "replace"
	unlessJobs  = "fail"
)

// job runs a job of systemd and waits for its end.
func (s *Systemd) job(ctx context.Context, verb, mode string, begin func(*systemd.Conn, context.Context, string, string, chan<- string) (int, error)) error {
	conn, err := s.connection()
	if err != nil {
		return err
	}
	ended := make(chan string, 1) // the connection must not wait for a caller that has gone
	if _, err := begin(conn, ctx, s.unit, mode, ended); err != nil {
		return fmt.Errorf("service: %s %s: %w", verb, s.unit, err)
	}
	select {
	case result := <-ended:
		if result != "done" {
			return fmt.Errorf("service: %s %s: the job of systemd ended with %q", verb, s.unit, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("service: %s %s: %w", verb, s.unit, ctx.Err())
	}
}

// Watch implements [guard.Watcher] over a connection of its own.
func (s *Systemd) Watch(ctx context.Context, changed func()) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	updates := make(chan *systemd.PropertiesUpdate, 64) // of all units; the next look finds updates that do not fit
	failed := make(chan error, 1)
	conn.SetPropertiesSubscriber(updates, failed)
	if err := conn.Subscribe(); err != nil {
		return fmt.Errorf("service: subscribe at systemd: %w", err)
	}
	changed() // what happened before
	alive := time.NewTicker(10 * time.Second)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case update := <-updates:
			if update.UnitName == s.unit {
				changed()
			}
		case <-failed: // an update was lost
			changed()
		case <-alive.C:
			if !conn.Connected() {
				return errors.New("service: the connection to systemd is lost")
			}
		}
	}
}

func text(properties map[string]any, name string) string {
	value, _ := properties[name].(string)
	return value
}

func number[T any](properties map[string]any, name string) T {
	value, _ := properties[name].(T)
	return value
}

func micros(since1970 uint64) time.Time {
	if since1970 == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(since1970))
}

// How a process ended, as waitid(2) and systemd number it.
const (
	exited = 1
	killed = 2
	dumped = 3
)

func signalName(number int32) string { return unix.SignalName(syscall.Signal(number)) }
