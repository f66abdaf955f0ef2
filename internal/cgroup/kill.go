package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/proc"
)

const (
	// pause is how long to wait until killed processes are looked for again.
	pause = 5 * time.Millisecond
	// patience is how long the number of killed processes may stay the same.
	patience = 50 * time.Millisecond
	// freezing bounds the wait until all processes of a group are frozen. Processes that are not
	// frozen are killed all the same, and the processes that they start meanwhile are killed next.
	freezing = 500 * time.Millisecond
	// minBatch and maxBatch bound how many processes are held by a descriptor at once: half of this process's limit of
	// descriptors.
	minBatch, maxBatch = 128, 1 << 14
)

// Kill kills all processes in the groups, and returns when none is left. Kill gives up after the timeout. Missing groups count
// as empty. Kill calls reap, unless it is nil, while it waits: an unreaped process stays in its group.
//
// The work grows linearly with the number of processes: they are signaled all at once. Processes that they started meanwhile
// are killed in another round, for which all are frozen if the groups include one of the freezer, so that no process starts
// another one. The first round does not freeze: the kernel has to run each process once to freeze it, and once more to end it.
func Kill(dirs []string, timeout time.Duration, reap func()) error {
	if reap == nil {
		reap = func() {}
	}
	killed := map[int]bool{}
	started := false // others, by processes that were killed
	for begin := time.Now(); ; {
		some, err := killAll(dirs, started, killed)
		if err != nil || !some {
			return err
		}
		awaitFewer(dirs, reap)
		left, err := membersOf(dirs)
		if len(left) == 0 {
			return err
		}
		if time.Since(begin) > timeout {
			return errors.Join(fmt.Errorf("%d processes in control groups do not end", len(left)), err)
		}
		started = slices.ContainsFunc(left, func(pid int) bool { return !killed[pid] })
	}
}

// awaitFewer returns when the first of the groups is empty, or has no fewer processes than a while
// ago. The remaining processes may have to be killed again, or may have ended; the caller must check
// each one.
func awaitFewer(dirs []string, reap func()) {
	fewest, since := math.MaxInt, time.Now()
	for wait := pause; time.Since(since) < patience+wait; {
		time.Sleep(wait)
		reap()
		look := time.Now()
		pids, err := listed(dirs[0])
		if len(pids) == 0 || err != nil {
			return
		}
		if len(pids) < fewest {
			fewest, since = len(pids), time.Now()
		}
		wait = max(pause, 10*time.Since(look)) // the kernel gathers the list each time
	}
}

// killAll signals all processes in the groups, frozen or not, adds them to killed, and reports whether there are any.
func killAll(dirs []string, freezes bool, killed map[int]bool) (some bool, err error) {
	frozen, thaw := "", func() {}
	if freezes {
		frozen, thaw = freeze(dirs)
	}
	defer thaw()
	var problems []error
	now := map[int]bool{}
	defer func() { maps.Copy(killed, now) }()
	if frozen != "" {
		pids, err := listed(frozen)
		problems = append(problems, err, killFrozen(pids))
		some = len(pids) > 0
		for _, pid := range pids {
			now[pid] = true
		}
	}
	for _, dir := range dirs {
		pids, err := listed(dir)
		problems = append(problems, err)
		pids = slices.DeleteFunc(pids, func(pid int) bool { return now[pid] })
		if len(pids) == 0 {
			continue
		}
		some = true
		if os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) != nil {
			problems = append(problems, killMembers(dir, pids))
		}
		for _, pid := range pids {
			now[pid] = true
		}
	}
	return some, errors.Join(problems...)
}

// freeze freezes the group of the freezer of version 1, if there is one, and returns it.
func freeze(dirs []string) (frozen string, thaw func()) {
	for _, dir := range dirs {
		file := filepath.Join(dir, "freezer.state")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		thaw := func() { _ = os.WriteFile(file, []byte("THAWED"), 0) } // fails if the group is gone
		for begin := time.Now(); time.Since(begin) < freezing; time.Sleep(time.Millisecond) {
			if os.WriteFile(file, []byte("FROZEN"), 0) != nil {
				break
			}
			if state, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(state)) == "FROZEN" {
				return dir, thaw
			}
		}
		return "", thaw
	}
	return "", func() {}
}

// killFrozen signals processes whose numbers cannot come to mean others: they end when they are thawed.
func killFrozen(pids []int) error {
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// killMembers looks a second time which processes are in the group, when their numbers can
// no longer come to mean others.
func killMembers(dir string, pids []int) error {
	for some := range slices.Chunk(pids, batchSize()) {
		if err := killBatch(dir, some); err != nil {
			return err
		}
	}
	return nil
}

// batchSize is how many processes can be held at once. The kernel gathers the list of a group for each batch.
func batchSize() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return minBatch
	}
	return int(min(max(limit.Cur/2, minBatch), maxBatch))
}

func killBatch(dir string, pids []int) error {
	held := map[int]int{}
	defer func() {
		for _, fd := range held {
			unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if proc.IsNoProcess(err) {
			continue
		}
		if err != nil {
			return err
		}
		held[pid] = fd
	}
	again, err := listed(dir)
	for _, pid := range again {
		fd, known := held[pid]
		if !known {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return err
}

// membersOf returns the running processes in the groups. Version 1 lists processes until they are reaped. The
// result is empty only if all listed processes had ended before they were listed: a process that ends after it
// was listed may have started another one.
func membersOf(dirs []string) ([]int, error) {
	ended := map[int]bool{}
	for {
		pids, err := listedIn(dirs)
		pids = slices.DeleteFunc(pids, func(pid int) bool { return ended[pid] })
		if len(pids) == 0 {
			return nil, err
		}
		for _, pid := range pids {
			ended[pid] = proc.Ended(pid)
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return ended[pid] })
		if len(pids) > 0 {
			return pids, err
		}
	}
}

func listedIn(dirs []string) ([]int, error) {
	var pids []int
	var problems []error
	for _, dir := range dirs {
		some, err := listed(dir)
		pids, problems = append(pids, some...), append(problems, err)
	}
	slices.Sort(pids)
	return slices.Compact(pids), errors.Join(problems...)
}

// listed returns the processes that a group lists.
//
// Version 1 lists a process if any of its threads is in the group, such as a statusd that is about to execute a
// program there. A process belongs to the group if its first thread does. The result is empty only if no new thread
// appeared between two lists of threads: processes may replace each other between a list of threads and a list of
// processes.
func listed(dir string) ([]int, error) {
	threads, noThreads := readPIDs(filepath.Join(dir, "tasks")) // an error in version 2
	for {
		pids, err := readPIDs(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
			return nil, nil
		}
		if err != nil || noThreads != nil {
			return pids, err
		}
		inside := make(map[int]bool, len(threads))
		for _, thread := range threads {
			inside[thread] = true
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return !inside[pid] })
		if len(pids) > 0 {
			return pids, nil
		}
		threads, noThreads = readPIDs(filepath.Join(dir, "tasks"))
		if noThreads == nil && !slices.ContainsFunc(threads, func(thread int) bool { return !inside[thread] }) {
			return nil, nil
		}
	}
}

// readPIDs leaves out processes of other namespaces, which are 0, and this process: nothing kills
// itself, should one of its threads still be in the group.
func readPIDs(file string) ([]int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
