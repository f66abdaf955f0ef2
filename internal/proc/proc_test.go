package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStatWithAnyCommandName(t *testing.T) {
	const numbers = " S 7 42 43 0 -1 4194560 11 12 13 14 100 200 1000 -1 20 0 1 0 123456 1000 100"
	for _, command := range []string{"sh", "a b", "x) S 1 2 3 (y", "new\nline", ""} {
		got, err := parseStat(42, []byte("42 ("+command+")"+numbers))
		want := stat{
			pid: 42, parent: 7, session: 43, state: 'S', start: 123456,
			own: spent{ticks: 300, faults: 11, majorFaults: 13}, reaped: spent{ticks: 1000, faults: 12, majorFaults: 14},
		}
		if err != nil || got != want {
			t.Errorf("command %q: got %+v, %v; want %+v", command, got, err, want)
		}
	}
	for _, bad := range []string{"", "42 (sh", "42 (sh) S 1", "42 (sh)" + strings.ReplaceAll(numbers, "123456", "soon")} {
		if _, err := parseStat(42, []byte(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

// sleeper starts a process with these variables in a session of its own.
func sleeper(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "100000")
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

func TestAnIDIsOneProcess(t *testing.T) {
	cmd := sleeper(t)
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := id.Open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	unix.Close(fd)
	if id.HasEnded() {
		t.Error("a process that runs is said to have ended")
	}
	for story, other := range map[string]ID{
		"another start": {id.PID, id.Start + 1, id.Boot},
		"another boot":  {id.PID, id.Start, "another"},
		"no process":    {1 << 30, 1, id.Boot},
	} {
		if fd, err := other.Open(); !errors.Is(err, ErrGone) {
			t.Errorf("%s: got %d, %v; want ErrGone", story, fd, err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if (&ID{}).HasEnded() || !id.HasEnded() {
		t.Error("only a process that is known can have ended, and has")
	}
	if fd, err := id.Open(); !errors.Is(err, ErrGone) {
		t.Errorf("after its end: got %d, %v; want ErrGone", fd, err)
	}
}

// Who belongs is decided on a list, so that every case can be made up.
func TestMembersOfAContainer(t *testing.T) {
	all := []stat{
		{pid: 1, session: 1, start: 1, state: 'S'},
		{pid: 10, parent: 1, session: 10, start: 5, state: 'S'},  // the shim
		{pid: 11, parent: 10, session: 11, start: 6, state: 'S'}, // its command
		{pid: 12, parent: 11, session: 11, start: 7, state: 'S'},
		{pid: 13, parent: 12, session: 13, start: 8, state: 'S'}, // left the session
		{pid: 14, parent: 1, session: 11, start: 9, state: 'S'},  // left the family
		{pid: 15, parent: 11, session: 11, start: 9, state: 'Z'}, // has ended
		{pid: 20, parent: 1, session: 20, start: 3, state: 'S'},  // a stranger
	}
	for _, c := range []struct {
		story   string
		members Members
		want    []int
	}{
		{"nobody", Members{}, nil},
		{"descendants of the shim", Members{Ancestor: 10}, []int{11, 12, 13}},
		{"session and descendants", Members{Leader: ID{PID: 11, Start: 6}}, []int{11, 12, 13, 14}},
		{"a reused number of a leader", Members{Leader: ID{PID: 11, Start: 2}}, nil},
		{"a leader that is gone", Members{Leader: ID{PID: 21, Start: 2}}, nil},
	} {
		found, _ := c.members.find(all, all)
		var got []int
		for _, s := range found {
			got = append(got, s.pid)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.story, got, c.want)
		}
	}
}

func TestKillFindsProcessesByTheirVariable(t *testing.T) {
	mark := fmt.Sprint("MARK=of-test-", os.Getpid())
	mine, other := sleeper(t, "A=1", mark), sleeper(t, mark+"-too")
	members := Members{Variable: mark}
	if pids, err := members.PIDs(); err != nil || !slices.Equal(pids, []int{mine.Process.Pid}) {
		t.Errorf("got %v, %v; want %d only", pids, err, mine.Process.Pid)
	}
	if err := members.Kill(time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := mine.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("ended with %v, want SIGKILL", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process: %v, want it alive", err)
	}
}

// A process that was started by one that was killed meanwhile has the arguments of that one until it
// runs its own program.
func TestKillFindsProcessesByTheirArguments(t *testing.T) {
	arguments := []string{fmt.Sprint("a shim of test ", os.Getpid()), "123456.25"}
	start := func(arguments ...string) *exec.Cmd {
		cmd := &exec.Cmd{Path: "/bin/sleep", Args: arguments}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for !hasArguments(cmd.Process.Pid, arguments) { // in the middle of execve the kernel shows none
			runtime.Gosched()
		}
		return cmd
	}
	member, stranger := start(arguments...), start(arguments[0], "123456.25", "1")
	if err := (Members{Arguments: arguments}).Kill(time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := member.Wait(); err == nil {
		t.Error("the member ended by itself")
	}
	if hasArguments(stranger.Process.Pid, arguments) || stranger.Process.Signal(syscall.Signal(0)) != nil {
		t.Error("a process with more arguments was killed")
	}
	stranger.Process.Kill()
	stranger.Wait()
}

func TestBootIDIsThere(t *testing.T) {
	if boot, err := BootID(); err != nil || len(boot) != 36 {
		t.Errorf("got %q, %v; want a UUID", boot, err)
	}
	if _, err := Identify(os.Getpid()); err != nil {
		t.Errorf("ourselves: %v", err)
	}
}

// A process has an environment from its start on: in the middle of execve the kernel shows none.
func TestVariablesAreSeenFromTheStart(t *testing.T) {
	for range 500 {
		command := exec.Command("sleep", "100000")
		command.Env = []string{"MARK=here"}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		seen, _ := hasVariable(command.Process.Pid, "MARK=here")
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait() // killed
		if !seen {
			t.Fatal("a process that was just started does not show its variable")
		}
	}
}

// Each process of a chain starts the next one and ends, as a command does that goes to the background. No list of processes shows all
// of the chain, and none of it may be missed.
func TestKillFindsProcessesWhoseParentsEndMeanwhile(t *testing.T) {
	mark := fmt.Sprint("MARK=of-chain-", os.Getpid())
	first := exec.Command("/bin/sh", "-c", `hop() { if [ $1 -eq 0 ]; then exec sleep 100000; fi; hop $(($1-1)) & }; hop 300`)
	first.Env = []string{mark}
	if err := first.Run(); err != nil {
		t.Fatal(err)
	}
	members := Members{Variable: mark}
	if err := members.Kill(time.Minute); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if left, err := members.PIDs(); err != nil || len(left) > 0 {
			t.Fatalf("processes %d were left: %v", left, errors.Join(err, members.Kill(time.Minute)))
		}
	}
}

// The number of a process that has ended may be that of a thread by now.
func TestOpen_NumberOfAThread_IsGone(t *testing.T) {
	threads := make(chan int)
	done := make(chan struct{})
	defer close(done)
	for range 2 { // at least one of them is not the first thread of the process
		go func() {
			runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
			threads <- unix.Gettid()
			<-done
		}()
	}
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		thread := <-threads
		if thread == os.Getpid() {
			continue
		}
		fd, err := ID{PID: thread, Start: 1, Boot: boot}.Open()
		if !errors.Is(err, ErrGone) {
			t.Errorf("thread %d: got descriptor %d, %v; want %v", thread, fd, err, ErrGone)
		}
	}
}
