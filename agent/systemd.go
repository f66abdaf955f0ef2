package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Supervisor is systemd, as far as it wants to be told how the agent is (sd_notify(3)):
// once it is up, when it stops, and regularly that it is alive. The zero value is for an
// agent that nobody supervises.
type Supervisor struct {
	// Socket is the path of a datagram socket, or @NAME for an abstract one.
	Socket string
	// Watchdog is how long the silence may last before systemd restarts the agent; 0 if
	// it does not look.
	Watchdog time.Duration
}

// SupervisorFromEnvironment is the one that started this process, by the variables that
// systemd sets. It removes them, so that containers cannot speak in the agent's name.
func SupervisorFromEnvironment() Supervisor {
	s := Supervisor{Socket: os.Getenv("NOTIFY_SOCKET")}
	pid, watched := os.LookupEnv("WATCHDOG_PID")
	if !watched || pid == strconv.Itoa(os.Getpid()) {
		if micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && micros > 0 {
			s.Watchdog = time.Duration(micros) * time.Microsecond
		}
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"} {
		os.Unsetenv(name)
	}
	return s
}

// tell sends one message, such as READY=1.
func (s Supervisor) tell(message string) error {
	if s.Socket == "" {
		return nil
	}
	connection, err := net.Dial("unixgram", s.Socket)
	if err != nil {
		return fmt.Errorf("agent: tell systemd %s: %w", message, err)
	}
	_, err = connection.Write([]byte(message))
	return errors.Join(err, connection.Close())
}

// supervise says READY=1, then WATCHDOG=1 twice as often as asked for and as long as
// alive returns, and when ctx ends that the agent stops or reloads. An agent that is stuck
// says nothing.
func (s Supervisor) supervise(ctx context.Context, log *slog.Logger, alive func(), reloads func() bool) error {
	say := func(message string) {
		if err := s.tell(message); err != nil {
			log.Warn("systemd does not listen", "err", err)
		}
	}
	alive()
	say("READY=1")
	defer func() {
		if reloads() {
			say(reloading())
		} else {
			say("STOPPING=1")
		}
	}()
	var tick <-chan time.Time // for ever silent without a watchdog
	if s.Watchdog > 0 {
		ticker := time.NewTicker(s.Watchdog / 2)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
			alive()
			say("WATCHDOG=1")
		}
	}
}

// reloading is followed by READY=1 when the next agent runs.
func reloading() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "RELOADING=1"
	}
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000)
}
