package process

import (
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// What the kernel has reported of a connection may be looked at when the connection was closed and
// its number is that of a new shim's pidfd. That shim has not ended.
func TestANumberThatIsUsedAgainIsNotTheEndOfAShim(t *testing.T) {
	e, err := newExits()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	shim := exec.Command("sleep", "100000")
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	defer shim.Process.Kill() // and take reaps it
	pidfd, err := unix.PidfdOpen(shim.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := newContainer("pod", containerDir{}, record.Spec{})
	if err := e.add(pidfd, c); err != nil {
		t.Fatal(err)
	}
	if w := e.take(pidfd); w.container != nil || e.ended(c) {
		t.Fatalf("a shim that runs was taken for one that has ended: %+v", w)
	}
	if err := shim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if ended, _, err := e.wait(); err != nil || !slices.Equal(ended, []*container{c}) || !e.ended(c) {
		t.Errorf("got %v, %v; want its end", ended, err)
	}
}

// The runtime after a reload waits on the descriptors of the one before it, whose wait ended with a wake-up.
func TestWakeUp_EndsOneWait(t *testing.T) {
	e, err := newExits()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	e.wakeUp()
	e.wakeUp() // it counts once
	if ended, spoke, err := e.wait(); len(ended)+len(spoke) != 0 || err != nil {
		t.Fatalf("wait returned %v, %v, %v", ended, spoke, err)
	}
	if hasEnded(e.wake) { // it can be read
		t.Error("each further wait would return at once")
	}
}
