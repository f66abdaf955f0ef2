// Package shim is the parent of one container: a small process that outlives statusd,
// so that a container neither ends with it nor ends unseen.
//
// A shim runs one command to its end and then itself ends:
//
//	wait for the go ──► start ──► started.json ──► wait ──► kill what is left ──► exit.json
//
// It takes requests over a socket and reports its state there, so that a disk that takes
// no writes keeps no container from being stopped and no end from being seen. While the
// exit cannot be written the shim stays, reports it to each statusd that connects, and
// tries again. It ignores all signals that can be ignored; SIGUSR1 makes it read
// stop.json, the way in which earlier releases asked for a stop. As subreaper of its
// descendants it inherits every process that the command leaves behind, and none of them
// survives the command.
package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/cgroup"
	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/internal/proc"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// ControlFD is the descriptor of the shim's end of the socket pair: see package control.
const ControlFD = 3

// killTimeout bounds the wait for processes that even SIGKILL does not end.
const killTimeout = 30 * time.Second

// drainTimeout bounds the wait for output when no process should be left to write any.
const drainTimeout = 2 * time.Second

type shim struct {
	dir     record.Dir
	spec    record.Spec
	log     *logfile.Writer
	signals signals
	server  *server
	state   control.State // what connections are sent

	main     int         // process number of the command; ours to signal until it is reaped
	kill     *time.Timer // fires when the grace is over; nil until a stop is asked for
	deadline time.Time   // when kill fires
}

// complain writes to shim.log.
func complain(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s %s: %v\n", time.Now().UTC().Format(time.RFC3339), what, err)
}

// signals are the channels on which signals arrive. One place is enough in each: what
// they ask for is done for all of them at once.
type signals struct {
	children, stop, ignored chan os.Signal
}

// listen catches rather than ignores: a caught signal has its default effect again in
// the command that is started, an ignored one would stay ignored.
func listen() signals {
	s := signals{make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)}
	signal.Notify(s.children, unix.SIGCHLD)
	signal.Notify(s.stop, unix.SIGUSR1)
	signal.Notify(s.ignored, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE,
		unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	return s
}

// Main runs the shim of the container in the working directory and returns its exit code. A
// process that was not started by the runtime changes nothing.
func Main(id string) int {
	dir, err := os.Getwd()
	if err != nil {
		complain("looking for the container", err)
		return 2
	}
	s := &shim{dir: record.Dir(dir), signals: listen()}
	if err := s.prepare(id); err != nil {
		complain("this program is started by statusd itself", err)
		return 2
	}
	s.server = newServer()
	if !s.told() {
		// The runtime died before it could remember this shim. Nothing has run, and
		// nothing may stay.
		if err := s.dir.Discard(); err != nil {
			complain("removing a container that was never started", err)
			return 1
		}
		return 0
	}
	if err := s.run(); err != nil {
		complain("shim failed", err)
		return 1
	}
	return 0
}

// prepare makes sure that the descriptor and the directory belong to a shim.
func (s *shim) prepare(id string) error {
	if !control.IsPair(ControlFD) {
		return fmt.Errorf("descriptor %d is not the socket of a shim", ControlFD)
	}
	unix.CloseOnExec(ControlFD)
	if err := record.Read(s.dir.Spec(), &s.spec); err != nil {
		return err
	}
	if s.spec.ID != id {
		return fmt.Errorf("%s is the directory of container %s, not of %s", s.dir, s.spec.ID, id)
	}
	return nil
}

// told waits for the go of the runtime.
func (s *shim) told() bool {
	first := s.server.take(ControlFD)
	request, err := first.receive()
	if err != nil || request.Go != s.spec.ID {
		return false
	}
	go s.server.listenTo(first)
	return true
}

func (s *shim) run() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	unix.Umask(0o022)
	if err := s.server.open(s.dir.Control()); err != nil {
		complain("no control socket, the next statusd stops by signals", err)
	}
	defer os.Remove(s.dir.Control()) // one that stays does no harm
	defer os.Remove(s.dir.Attach())
	log, err := logfile.NewWriter(s.dir.Logs(), s.spec.LogMaxBytes, s.spec.LogMaxFiles)
	if err != nil {
		s.finish(startFailed(fmt.Errorf("open log: %w", err)))
		return nil
	}
	s.log = log
	output, err := s.start()
	if err != nil {
		s.finish(startFailed(err))
		return nil
	}
	debug.FreeOSMemory() // from here on the shim only waits, maybe for years
	status := s.wait()
	finishedAt := time.Now()
	s.killRest()
	output.drain()
	exit := s.ended(status, finishedAt, cgroup.OOMKilled(s.spec.Cgroup))
	if err := s.log.Close(); err != nil {
		complain("lost output", err)
	}
	s.finish(exit)
	return nil
}

// start starts the command and says so, in started.json and to the runtime.
func (s *shim) start() (*output, error) {
	out, err := newOutput(s.spec)
	if err != nil {
		return nil, err
	}
	s.main, err = startMain(s.spec, s.spec.Command, out.command)
	if err != nil {
		out.abandon()
		return nil, err
	}
	started := &record.Started{At: time.Now()}
	out.copyTo(s.log)
	if err := out.attachments.open(s.dir.Attach()); err != nil {
		complain("no client can attach", err)
	}
	if started.Main, err = proc.Identify(s.main); err == nil {
		err = record.Write(s.dir.Started(), started)
	}
	if err != nil {
		// The runtime, this one and the next, hears of the start all the same.
		complain("recording the start", err)
	}
	s.state.Started = started
	s.server.report(s.state)
	return out, nil
}

// wait returns when the command has ended, after having stopped it if asked to. A signal
// that came before the shim listened for signals is lost, but stop.json was written first.
func (s *shim) wait() syscall.WaitStatus {
	var early record.Stop
	if err := record.Read(s.dir.Stop(), &early); err == nil {
		s.stop(early.Grace)
	}
	for {
		var graceOver <-chan time.Time
		if s.kill != nil {
			graceOver = s.kill.C
		}
		select {
		case <-s.signals.children:
			if status, ended := s.reap(); ended {
				return status
			}
		case event := <-s.server.events:
			request := s.server.handle(event, s.state)
			if request.Stop != nil {
				s.stop(request.Stop.Grace)
			}
		case <-s.signals.stop:
			s.readStop()
		case <-graceOver:
			s.signalMain(unix.SIGKILL)
		case <-s.signals.ignored:
		}
	}
}

// reap takes all children that have ended, and reports whether the command was among
// them.
func (s *shim) reap() (status syscall.WaitStatus, ended bool) { return reapUntil(s.main) }

func reapUntil(main int) (status syscall.WaitStatus, ended bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid == 0:
			return status, ended
		case pid == main:
			status, ended = ws, true
		}
	}
}

// readStop does what stop.json asks for, if there is one.
func (s *shim) readStop() {
	var stop record.Stop
	err := record.Read(s.dir.Stop(), &stop)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		complain("reading a request to stop; killing at once", err)
	}
	s.stop(stop.Grace)
}

// stop asks the command to end, once; each request can only bring the kill nearer.
func (s *shim) stop(grace time.Duration) {
	grace = max(0, grace)
	deadline := time.Now().Add(grace)
	switch {
	case s.kill == nil:
		s.kill = time.NewTimer(grace)
		if grace > 0 {
			s.signalMain(syscall.Signal(s.spec.StopSignal))
		}
	case deadline.Before(s.deadline):
		s.kill.Reset(grace)
	default:
		return
	}
	s.deadline = deadline
}

func (s *shim) signalMain(signal syscall.Signal) {
	if err := syscall.Kill(s.main, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		complain("signalling the container", err)
	}
}

// killRest ends whatever the command has left behind, and commands that were executed
// inside the container.
func (s *shim) killRest() {
	if err := cgroup.Kill(s.spec.Cgroup, killTimeout, func() { s.reap() }); err != nil {
		complain("killing what is left in the control groups", err)
	}
	s.reap()
	rest := proc.Members{Ancestor: os.Getpid(), Variable: MarkerVariable + "=" + s.spec.ID}
	if err := rest.Kill(killTimeout); err != nil {
		complain("killing what the container left behind", err)
	}
	s.reap()
}
