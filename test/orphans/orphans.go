// Package orphans ends what the containers of a test leave behind when the test process is killed: shims are made to outlive the
// program that started them, so neither a clean-up of the test nor the signal at a parent's death ends them.
//
//	orphans.EndBelow(t, stateDir) // before the first container runs
//
// A guard process, started with the first call, waits for the end of the test process. It then kills each process whose working
// directory is below one of the directories, as that of a shim is, with all that descends from it.
package orphans

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// guardArgument is the first argument of a test binary that is the guard of another one.
const guardArgument = "guard-of-orphans"

// A test binary that was started as a guard is nothing else: its TestMain is not reached.
func init() {
	if len(os.Args) > 1 && os.Args[1] == guardArgument {
		guard(os.Stdin)
		os.Exit(0)
	}
}

// start starts the guard and returns where it reads directories from. The guard sees the end of this process there.
var start = sync.OnceValues(func() (io.Writer, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command("/proc/self/exe", guardArgument)
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals for the group of the test are not for its guard
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guard of orphans: %w", err)
	}
	return write, cmd.Process.Release()
})

// EndBelow has what runs below a directory end when this process has ended.
func EndBelow(t testing.TB, dir string) {
	t.Helper()
	absolute, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	to, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(to, absolute); err != nil {
		t.Fatalf("the guard of orphans has ended: %v", err)
	}
}

// guard reads directories until the other process ends, and ends its remaining processes. Processes that were starting may appear
// during a look.
func guard(from io.Reader) {
	var dirs []string
	for lines := bufio.NewScanner(from); lines.Scan(); {
		dirs = append(dirs, lines.Text())
	}
	for range 100 {
		found := below(dirs)
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// below are the processes whose working directory is below one of the directories, and their descendants.
func below(dirs []string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children, marked := map[int][]int{}, map[int]bool{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		children[parent(pid)] = append(children[parent(pid)], pid)
		where, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil {
			continue // ended, or of another user
		}
		for _, dir := range dirs {
			marked[pid] = marked[pid] || strings.HasPrefix(where, dir+"/")
		}
	}
	var add func(pid int)
	seen := map[int]bool{}
	add = func(pid int) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		pids = append(pids, pid)
		for _, child := range children[pid] {
			add(child)
		}
	}
	for pid, is := range marked {
		if is {
			add(pid)
		}
	}
	return pids
}

// parent is the parent's process ID, 0 if it is unknown or the process is a zombie, which needs no end.
func parent(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, which may have any byte, ends with the last parenthesis.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 || fields[0] == "Z" {
		return 0
	}
	number, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return number
}
