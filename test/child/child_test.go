package child

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// parentOf makes this test binary a parent that starts a child, tells its number and waits.
const parentOf = "CHILD_TEST_PARENT"

func TestChildEndsWithItsParent(t *testing.T) {
	if os.Getenv(parentOf) != "" {
		beParent(t)
		return
	}
	parent := exec.Command(os.Args[0], "-test.run", "^TestChildEndsWithItsParent$")
	parent.Env = append(os.Environ(), parentOf+"=1")
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent did not tell the number of its child: %v", err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent said %q, want a number", line)
	}
	child, err := unix.PidfdOpen(number, 0)
	if err != nil {
		t.Fatalf("open child %d: %v", number, err)
	}
	defer unix.Close(child)

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed, as asked
	awaitEnd(t, child)
}

func beParent(t *testing.T) {
	p, err := Start(exec.Command("sleep", "600"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(strconv.Itoa(p.PID()) + "\n")
	<-p.Exited
}

func awaitEnd(t *testing.T, pidfd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(time.Minute/time.Millisecond))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			t.Fatalf("wait for the child: %v", err)
		case n == 0:
			t.Error("the child outlived its parent by a minute")
			_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		}
		return
	}
}
