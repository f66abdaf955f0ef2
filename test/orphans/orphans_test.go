package orphans

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// killedTest makes this test binary one that starts an orphan, prints its number and waits to be killed.
const killedTest = "ORPHANS_TEST_DIR"

// What outlives its parent, and what that has started with another working directory, ends with a test process that is killed.
func TestKilledTest_LeavesNothingRunning(t *testing.T) {
	if dir := os.Getenv(killedTest); dir != "" {
		beKilled(t, dir)
		return
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "container"), 0o755); err != nil {
		t.Fatal(err)
	}
	killed := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	killed.Env = append(os.Environ(), killedTest+"="+dir)
	stdout, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	var orphans []int // descriptors
	for range 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the test did not print the number of an orphan: %v", err)
		}
		number, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("the test printed %q, want a number", line)
		}
		orphan, err := unix.PidfdOpen(number, 0)
		if err != nil {
			t.Fatalf("open orphan %d: %v", number, err)
		}
		defer unix.Close(orphan)
		orphans = append(orphans, orphan)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // killed, as asked
	for i, orphan := range orphans {
		poll := []unix.PollFd{{Fd: int32(orphan), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(poll, -1) // a test that hangs here is ended by its time limit
			if n == 1 {
				break
			}
			if err != nil && err != unix.EINTR {
				t.Fatalf("orphan %d: %v", i, err)
			}
		}
	}
}

func beKilled(t *testing.T, dir string) {
	EndBelow(t, dir)
	cmd := exec.Command("/bin/sh", "-c", "cd / && sleep 1000000 & echo $!; wait")
	cmd.Dir = filepath.Join(dir, "container")
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Println(cmd.Process.Pid)
	select {}
}
