package machine

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"

	"github.com/godbus/dbus/v5"
)

const (
	logindName = "org.freedesktop.login1"
	logindPath = dbus.ObjectPath("/org/freedesktop/login1")
)

// logind announces shutdowns on a bus of its own. It never shuts anything down.
type logind struct {
	address string
	daemon  *exec.Cmd
	bus     *dbus.Conn
	under   atomic.Bool
}

func startLogind() (*logind, error) {
	l := &logind{daemon: exec.Command("dbus-daemon", "--session", "--nofork", "--print-address=1")}
	out, err := l.daemon.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.daemon.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("dbus-daemon does not name its address: %w", err)
	}
	l.address = strings.TrimSpace(address)
	if l.bus, err = dbus.Connect(l.address); err != nil {
		return nil, err
	}
	for _, name := range []string{logindName + ".Manager", "org.freedesktop.DBus.Properties"} {
		if err := l.bus.Export(l, logindPath, name); err != nil {
			return nil, err
		}
	}
	_, err = l.bus.RequestName(logindName, 0)
	return l, err
}

// Inhibit hands out a lock: one end of a pipe. What it would delay never happens.
func (l *logind) Inhibit(_, _, _, _ string) (dbus.UnixFD, *dbus.Error) {
	_, writer, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	return dbus.UnixFD(writer.Fd()), nil
}

// Get answers for the properties that agents ask for.
func (l *logind) Get(_, name string) (dbus.Variant, *dbus.Error) {
	if name == "PreparingForShutdown" {
		return dbus.MakeVariant(l.under.Load()), nil
	}
	return dbus.MakeVariant(uint64(60_000_000)), nil // InhibitDelayMaxUSec: longer than any agent wants
}

func (l *logind) announce(begins bool) error {
	l.under.Store(begins)
	return l.bus.Emit(logindPath, logindName+".Manager.PrepareForShutdown", begins)
}
