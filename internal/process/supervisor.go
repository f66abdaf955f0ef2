package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// ErrReload as the cause of the end of a context means that another daemon takes over in this process.
var ErrReload = errors.New("reload")

// Supervisor is systemd as the receiver of sd_notify(3) messages: ready, stopping, reloading, and
// the watchdog's keep-alive. The zero value disables them.
type Supervisor struct {
	// Socket is the path of a datagram socket, or @NAME for an abstract one.
	Socket string
	// Watchdog is the time without a message after which systemd restarts the process; 0
	// disables it.
	Watchdog time.Duration
}

// SupervisorFromEnvironment returns the supervisor that started this process, from the environment
// variables that systemd sets. SupervisorFromEnvironment removes them, so that containers cannot send messages in the
// process's name.
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

// notify sends one message, such as READY=1.
func (s Supervisor) notify(message string) error {
	if s.Socket == "" {
		return nil
	}
	connection, err := net.Dial("unixgram", s.Socket)
	if err != nil {
		return fmt.Errorf("sd_notify %s: %w", message, err)
	}
	_, err = connection.Write([]byte(message))
	return errors.Join(err, connection.Close())
}

// Supervise sends READY=1, then WATCHDOG=1 at half the watchdog's interval as long as alive
// returns, and when ctx ends STOPPING=1 or RELOADING=1. A stuck process sends nothing.
func (s Supervisor) Supervise(ctx context.Context, log *slog.Logger, alive func(), reloads func() bool) error {
	notify := func(message string) {
		if err := s.notify(message); err != nil {
			log.Warn("sd_notify failed", "err", err)
		}
	}
	alive()
	notify("READY=1")
	defer func() {
		if reloads() {
			notify(reloading())
		} else {
			notify("STOPPING=1")
		}
	}()
	var tick <-chan time.Time // nil, so never ready, without a watchdog
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
			notify("WATCHDOG=1")
		}
	}
}

// Reloaded sends the messages that complete a reload without changes.
func (s Supervisor) Reloaded() error {
	return errors.Join(s.notify(reloading()), s.notify("READY=1"))
}

// reloading is followed by READY=1 when the next one runs.
func reloading() string {
	now, err := monotonic()
	if err != nil {
		return "RELOADING=1"
	}
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Microseconds())
}
