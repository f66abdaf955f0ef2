package proc

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Members identifies the processes of a container. Each criterion alone is sufficient, and none can
// be true of an unrelated process.
type Members struct {
	// Variable is NAME=value in the environment that the process was started with.
	Variable string
	// Arguments are the arguments of a process that is killed while it starts a member: until the member
	// runs its own program, it has these and no Variable.
	Arguments []string
	// Leader is the leader of the container's session, if it is known. While it exists
	// all of its session belongs; afterwards the number of a session proves nothing.
	Leader ID
	// Ancestor is a process whose descendants all belong, but not itself, or 0.
	Ancestor int
}

// find returns the members that have not ended. Descendants of a member belong as
// well, whatever they did to their session and environment. Only the fresh processes are looked at;
// the others were strangers before. Missed says that a process ended before it could be looked at.
func (m Members) find(all, fresh []stat) (found []stat, missed bool) {
	children := map[int][]stat{}
	leaderExists := false
	for _, s := range all {
		children[s.parent] = append(children[s.parent], s)
		leaderExists = leaderExists || (m.Leader.PID > 0 && s.pid == m.Leader.PID && s.start == m.Leader.Start)
	}
	member := map[int]bool{}
	var add func(s stat)
	add = func(s stat) {
		if member[s.pid] || s.pid == m.Ancestor {
			return
		}
		member[s.pid] = true
		for _, child := range children[s.pid] {
			add(child)
		}
	}
	for _, s := range fresh {
		belongs := leaderExists && s.session == m.Leader.PID
		// The arguments come first: a member that runs its program in between has the variable then.
		belongs = belongs || (len(m.Arguments) > 0 && hasArguments(s.pid, m.Arguments))
		if !belongs && m.Variable != "" {
			var ending bool
			belongs, ending = hasVariable(s.pid, m.Variable)
			missed = missed || ending
		}
		if belongs {
			add(s)
		}
		missed = missed || s.ending
	}
	if m.Ancestor > 0 {
		for _, child := range children[m.Ancestor] {
			add(child)
		}
	}
	for _, s := range all {
		if member[s.pid] && !s.ended() {
			found = append(found, s)
		}
	}
	return found, missed
}

// lookTimeout bounds how long processes are looked for that were started meanwhile, on a machine on
// which processes of others start and end all the time.
const lookTimeout = 2 * time.Second

// list returns the members that exist now. An empty list means that no member exists.
//
// A process that ends before it is read may have been a member, and may have started another process after
// the processes were listed. So newly started processes are read, until none of them has ended. They are
// read once more in any case: process IDs wrap around to the lowest.
func (m Members) list() ([]stat, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	if m.Leader.Boot != boot {
		m.Leader = ID{} // it ended with the machine
	}
	var all []stat
	for begin, first := time.Now(), true; ; first = false {
		now, fresh, gone, err := update(all)
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		found, missed := m.find(now, fresh)
		sure := !first && !gone && !missed
		if len(found) > 0 || sure || time.Since(begin) > lookTimeout {
			return found, nil
		}
		all = now
	}
}

// PIDs are the numbers of the members that exist now.
func (m Members) PIDs() ([]int, error) {
	members, err := m.list()
	pids := make([]int, len(members))
	for i, s := range members {
		pids[i] = s.pid
	}
	return pids, err
}

// Kill kills all members, including processes that they start meanwhile, and returns when they have
// ended. Kill gives up after the timeout, which only processes that the kernel cannot interrupt can
// reach.
func (m Members) Kill(timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		members, err := m.list()
		if err != nil {
			return err
		}
		if len(members) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes, %d among them, do not end", len(members), members[0].pid)
		}
		if err := killAll(members, deadline); err != nil {
			return err
		}
	}
}

// killAll kills first and waits then, so that no process has time to replace a sibling.
func killAll(members []stat, deadline time.Time) error {
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, s := range members {
		fd, err := openStarted(s.pid, s.start)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		fds = append(fds, fd)
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", s.pid, err)
		}
	}
	for _, fd := range fds {
		if err := awaitEnd(fd, deadline); err != nil {
			return err
		}
	}
	return nil
}

// awaitEnd waits until a process has ended or the deadline is over.
func awaitEnd(pidfd int, deadline time.Time) error {
	for {
		poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		left := max(0, time.Until(deadline))
		n, err := unix.Poll(poll, int(left.Milliseconds())+1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("poll a process: %w", err)
		case n > 0 || left == 0:
			return nil
		}
	}
}
