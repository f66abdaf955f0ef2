//go:build real

package logind

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/statusd/statusd/test/dbustest"
)

// fakeLogind is logind on a bus of its own.
type fakeLogind struct {
	bus    *dbus.Conn
	asked  chan string
	ours   chan *os.File // the end of the lock that is still here
	closed chan struct{} // when a lock was let go
	under  atomic.Bool   // whether a shutdown is under way
}

// Inhibit hands out one end of a pipe and waits for its end.
func (f *fakeLogind) Inhibit(what, who, _, mode string) (dbus.UnixFD, *dbus.Error) {
	f.asked <- what + " " + who + " " + mode
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	go func() {
		defer reader.Close()
		_, _ = reader.Read(make([]byte, 1))
		f.closed <- struct{}{}
	}()
	lock := dbus.UnixFD(writer.Fd())
	f.ours <- writer // the bus sends a copy after this returns
	return lock, nil
}

// Get answers for the properties that are asked for.
func (f *fakeLogind) Get(_, name string) (dbus.Variant, *dbus.Error) {
	if name == "PreparingForShutdown" {
		return dbus.MakeVariant(f.under.Load()), nil
	}
	return dbus.MakeVariant(uint64(7_000_000)), nil
}

// startLogind runs a bus and the fake on it.
func startLogind(t *testing.T) (*fakeLogind, string) {
	t.Helper()
	bus, address := dbustest.Bus(t)
	f := &fakeLogind{bus: bus, asked: make(chan string, 1), ours: make(chan *os.File, 1), closed: make(chan struct{}, 1)}
	for _, name := range []string{logindName + ".Manager", "org.freedesktop.DBus.Properties"} {
		if err := bus.Export(f, logindPath, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bus.RequestName(logindName, 0); err != nil {
		t.Fatal(err)
	}
	return f, address
}

// Over a real bus: a lock is taken, announcements arrive and others do not, and the lock is let go.
func TestLogindOverARealBus(t *testing.T) {
	fake, address := startLogind(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	host := &Host{Address: address}
	announcements, err := host.Announcements(ctx)
	if err != nil {
		t.Fatal(err)
	}
	atMost, release, err := host.Delay(ctx)
	if err != nil || atMost != 7*time.Second {
		t.Fatalf("got %v (%v), want what logind says: 7s", atMost, err)
	}
	(<-fake.ours).Close()
	if asked := <-fake.asked; asked != "shutdown statusd delay" {
		t.Errorf("logind was asked for %q", asked)
	}
	for _, s := range []struct {
		member string
		body   any
	}{{"PrepareForSleep", true}, {announced, "soon"}, {announced, true}, {announced, false}} {
		if err := fake.bus.Emit(logindPath, logindCall+s.member, s.body); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []bool{false, true, false} { // at first: none is under way
		if got := <-announcements; got != want {
			t.Errorf("got %t, want %t", got, want)
		}
	}
	select {
	case <-fake.closed:
		t.Error("the lock was let go early")
	default:
	}
	release()
	release()
	<-fake.closed
	cancel()
	if _, open := <-announcements; open {
		t.Error("an announcement after the end")
	}
}

// Announcements come in their order, however long the listener takes for one of them: the last one is what holds.
func TestAnnouncementsComeInOrder(t *testing.T) {
	fake, address := startLogind(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	announcements, err := (&Host{Address: address}).Announcements(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const all = 40
	for i := range all {
		if err := fake.bus.Emit(logindPath, logindCall+announced, i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	<-announcements // at first: none is under way
	for i := range all {
		if got := <-announcements; got != (i%2 == 0) {
			t.Fatalf("announcement %d is %t", i, got)
		}
	}
	cancel()
	for range announcements {
	}
}

// A shutdown that was announced before reaches listeners that come later.
func TestAShutdownThatIsUnderWay(t *testing.T) {
	fake, address := startLogind(t)
	fake.under.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	announcements, err := (&Host{Address: address}).Announcements(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if begins, open := <-announcements; !begins || !open {
		t.Errorf("got %t (%t), want the shutdown that is under way", begins, open)
	}
	cancel()
	for range announcements {
	}
}
