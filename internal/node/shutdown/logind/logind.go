// Package logind hears of shutdowns of machines with systemd. It is apart from package shutdown, so that a node without it
// links no D-Bus.
package logind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

var errLost = errors.New("logind: the connection is lost")

const (
	logindName = "org.freedesktop.login1"
	logindPath = dbus.ObjectPath("/org/freedesktop/login1")
	logindCall = logindName + ".Manager."
	announced  = "PrepareForShutdown"
)

// Host is a shutdown.Host. It speaks D-Bus; the zero value uses the system bus.
type Host struct {
	// Address of the bus; the system bus if empty.
	Address string

	mu  sync.Mutex // guards bus
	bus *dbus.Conn // of the last Announcements
}

func (l *Host) connect(ctx context.Context) (*dbus.Conn, error) {
	options := []dbus.ConnOption{
		dbus.WithContext(ctx),
		// The default one gives signals that are not taken at once in any order.
		dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()),
	}
	if l.Address == "" {
		return dbus.ConnectSystemBus(options...)
	}
	return dbus.Connect(l.Address, options...)
}

// Announcements implements shutdown.Host.
func (l *Host) Announcements(ctx context.Context) (<-chan bool, error) {
	bus, err := l.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("logind: connect to D-Bus: %w", err)
	}
	if err := bus.AddMatchSignalContext(ctx, dbus.WithMatchObjectPath(logindPath),
		dbus.WithMatchInterface(logindName+".Manager"), dbus.WithMatchMember(announced)); err != nil {
		bus.Close()
		return nil, fmt.Errorf("logind: subscribe: %w", err)
	}
	signals := make(chan *dbus.Signal) // the handler queues signals that are not received yet
	bus.Signal(signals)
	l.mu.Lock()
	l.bus = bus
	l.mu.Unlock()
	// A shutdown announced without a subscriber, for example during a restart of the bus, is not
	// announced again.
	var under bool
	if err := property(ctx, bus, "PreparingForShutdown").Store(&under); err != nil {
		bus.Close()
		return nil, fmt.Errorf("logind: ask whether it shuts down: %w", err)
	}
	announcements := make(chan bool, 1) // the first one waits there
	announcements <- under
	go func() {
		defer close(announcements)
		defer bus.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case signal, open := <-signals:
				if !open {
					return
				}
				begins, ok := announcement(signal)
				if !ok {
					continue
				}
				select {
				case announcements <- begins:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return announcements, nil
}

func property(ctx context.Context, bus *dbus.Conn, name string) *dbus.Call {
	return bus.Object(logindName, logindPath).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, logindName+".Manager", name)
}

// announcement reads a signal, which anything on the bus may have sent.
func announcement(signal *dbus.Signal) (begins, ok bool) {
	if signal.Name != logindCall+announced || len(signal.Body) != 1 {
		return false, false
	}
	begins, ok = signal.Body[0].(bool)
	return begins, ok
}

// Delay implements shutdown.Host, after Announcements.
func (l *Host) Delay(ctx context.Context) (atMost time.Duration, release func(), err error) {
	l.mu.Lock()
	bus := l.bus
	l.mu.Unlock()
	if bus == nil {
		return 0, nil, errLost
	}
	manager := bus.Object(logindName, logindPath)
	var micros uint64
	if err := property(ctx, bus, "InhibitDelayMaxUSec").Store(&micros); err != nil {
		return 0, nil, fmt.Errorf("logind: ask how long it waits: %w", err)
	}
	var lock dbus.UnixFD
	err = manager.CallWithContext(ctx, logindCall+"Inhibit", 0,
		"shutdown", "statusd", "pods are ended in order", "delay").Store(&lock)
	if err != nil {
		return 0, nil, fmt.Errorf("logind: delay shutdowns: %w", err)
	}
	file := os.NewFile(uintptr(lock), "inhibitor") // closing it lets the shutdown go on
	return time.Duration(micros) * time.Microsecond, sync.OnceFunc(func() { file.Close() }), nil
}
