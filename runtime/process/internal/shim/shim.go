// Package shim is the parent of one container: a small process that outlives statusd,
// so that a container neither ends with it nor ends unseen.
//
// A shim runs one command to its end and then itself ends:
//
//	wait for the go ──► start ──► started.json ──► wait ──► kill what is left ──► exit.json
//
// It takes requests to stop from stop.json when SIGUSR1 says so, and ignores all other
// signals that can be ignored. As subreaper of its descendants it inherits every process
// that the command leaves behind, and none of them survives the command.
package shim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/logfile"
	"github.com/statusd/statusd/runtime/process/internal/proc"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// ControlFD is the descriptor on which the runtime says go, with one byte, and on which
// the shim answers by closing it: the container has started, or its exit is recorded.
const ControlFD = 3

// MarkerVariable names the variable that every process of a container carries, with the
// container's ID.
const MarkerVariable = runtime.VariablePrefix + "CONTAINER_ID"

// killTimeout bounds the wait for processes that even SIGKILL does not end.
const killTimeout = 30 * time.Second

// drainTimeout bounds the wait for output after nobody should be left to write any.
const drainTimeout = 2 * time.Second

// retryPause is how long a shim waits to record an exit again that it could not record.
const retryPause = time.Second

type shim struct {
	dir     record.Dir
	spec    record.Spec
	log     *logfile.Writer
	logger  *slog.Logger
	signals signals

	main      int // process number of the command; ours to signal until it is reaped
	startedAt time.Time
	kill      *time.Timer // fires when the grace is over; nil while nobody asked to stop
	deadline  time.Time   // when kill fires
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

// Main runs the shim of the container in dir and returns its exit code.
func Main(dir string) int {
	s := &shim{dir: record.Dir(dir), signals: listen(), logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	unix.CloseOnExec(ControlFD)
	control := os.NewFile(ControlFD, "control")
	if !told(control) {
		// The runtime died before it could remember this shim. Nothing has run, and
		// nothing may stay.
		if err := os.RemoveAll(dir); err != nil {
			s.logger.Error("removing a container that was never started", "dir", dir, "err", err)
			return 1
		}
		return 0
	}
	if err := s.run(control); err != nil {
		s.logger.Error("shim failed", "dir", dir, "err", err)
		return 1
	}
	return 0
}

// told waits for the go of the runtime.
func told(control io.Reader) bool {
	n, err := control.Read(make([]byte, 1))
	return n == 1 && err == nil
}

func (s *shim) run(control io.Closer) error {
	if err := record.Read(s.dir.Spec(), &s.spec); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	unix.Umask(0o022)
	log, err := logfile.NewWriter(s.dir.Logs(), s.spec.LogMaxBytes, s.spec.LogMaxFiles)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	s.log = log

	output, err := s.start()
	if err != nil {
		s.record(startFailed(err))
		return control.Close()
	}
	if err := control.Close(); err != nil {
		return err
	}
	debug.FreeOSMemory() // from here on the shim only waits, maybe for years
	status := s.wait()
	finishedAt := time.Now()
	s.killRest()
	output.drain()
	exit := s.ended(status, finishedAt)
	if err := s.log.Close(); err != nil {
		s.logger.Error("lost output", "err", err)
	}
	s.record(exit)
	return nil
}

// start starts the command and says so in started.json.
func (s *shim) start() (*output, error) {
	out, err := newOutput()
	if err != nil {
		return nil, err
	}
	s.main, err = startMain(s.spec, out.stdout.write, out.stderr.write)
	if err != nil {
		out.abandon()
		return nil, err
	}
	s.startedAt = time.Now()
	out.copyTo(s.log)
	main, err := proc.Identify(s.main)
	if err == nil {
		err = record.Write(s.dir.Started(), record.Started{Main: main, At: s.startedAt})
	}
	if err != nil {
		// The container runs; what is lost is only how a shim's own death is cleaned up.
		s.logger.Error("recording the start", "err", err)
	}
	return out, nil
}

// wait returns when the command has ended, after having stopped it if asked to.
func (s *shim) wait() syscall.WaitStatus {
	s.readStop() // a request may have come before there was anything to stop
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
		case <-s.signals.stop:
			s.readStop()
		case <-graceOver:
			s.signalMain(unix.SIGKILL)
		case <-s.signals.ignored:
		}
	}
}

// reap takes all children that have ended, and tells whether the command was among them.
func (s *shim) reap() (status syscall.WaitStatus, ended bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid == 0:
			return status, ended
		case pid == s.main:
			status, ended = ws, true
		}
	}
}

// readStop does what stop.json asks for. The first request signals the command, and
// each can only bring the kill nearer.
func (s *shim) readStop() {
	var stop record.Stop
	if err := record.Read(s.dir.Stop(), &stop); errors.Is(err, fs.ErrNotExist) {
		return
	} else if err != nil {
		s.logger.Error("reading a request to stop; killing at once", "err", err)
	}
	deadline := time.Now().Add(stop.Grace)
	switch {
	case s.kill == nil:
		s.kill = time.NewTimer(stop.Grace)
		if stop.Grace > 0 {
			s.signalMain(syscall.Signal(s.spec.StopSignal))
		}
	case deadline.Before(s.deadline):
		s.kill.Reset(stop.Grace)
	default:
		return
	}
	s.deadline = deadline
}

func (s *shim) signalMain(signal syscall.Signal) {
	if err := syscall.Kill(s.main, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		s.logger.Error("signalling the container", "signal", signal.String(), "err", err)
	}
}

// killRest ends whatever the command has left behind, and commands that were executed
// inside the container.
func (s *shim) killRest() {
	rest := proc.Members{Ancestor: os.Getpid(), Variable: MarkerVariable + "=" + s.spec.ID}
	if err := rest.Kill(killTimeout); err != nil {
		s.logger.Error("killing what the container left behind", "err", err)
	}
	s.reap()
}

// record does not give up while there is a place to write to: an exit that is not
// recorded is an exit that nobody will ever know of.
func (s *shim) record(exit record.Exit) {
	for {
		err := record.WriteDurably(s.dir.Exit(), exit)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		s.logger.Error("recording the exit; trying again", "err", err)
		time.Sleep(retryPause)
	}
}
