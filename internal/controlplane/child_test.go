package controlplane

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// parentOf makes this test binary a parent that starts a child, tells its number and waits.
const parentOf = "CONTROLPLANE_TEST_PARENT"

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
	c, err := startChild("sh", "-c", "echo ready; exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	<-c.ready
	os.Stdout.WriteString(strconv.Itoa(c.process.Pid) + "\n")
	<-c.exited
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

func TestChildSaysWhyItEnded(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"echo controlplane: port in use >&2; exit 1", "port in use"},
		{"exit 3", "exit status 3"},
		{"exit 0", "exit status 0"},
		{"kill -9 $$", "signal: killed"},
	} {
		child, err := startChild("sh", "-c", c.script)
		if err != nil {
			t.Fatal(err)
		}
		<-child.exited
		if got := child.reason(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
}

func TestMissingBinaryIsAnError(t *testing.T) {
	if _, err := startChild("/nonexistent/controlplane"); err == nil {
		t.Error("a binary that does not exist was started")
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	for _, c := range []struct {
		log  string
		n    int
		want string
	}{
		{"", 2, ""},
		{"a\n", 2, "a\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nunfinished", 2, "b\nunfinished"},
		{strings.Repeat("x", 500) + "\n", 1, strings.Repeat("x", 400) + "…\n"},
	} {
		if got := Tail(c.log, c.n); got != c.want {
			t.Errorf("Tail(%q, %d): got %q, want %q", c.log, c.n, got, c.want)
		}
	}
}
