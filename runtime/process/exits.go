package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/control"
)

// exits reports which shims have ended or have something to say: one epoll over a pidfd
// and a connection of each. It costs nothing while nothing happens, and does not care who
// started a shim.
type exits struct {
	epoll, wake int

	mu   sync.Mutex // guards byFD and the descriptors of each container
	byFD map[int]watched
}

// watched is what a descriptor stands for.
type watched struct {
	*container      // nil for the shim of a command
	control    bool // the connection to the shim, not its pidfd
}

func newExits() (*exits, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(epoll))
	}
	e := &exits{epoll: epoll, wake: wake, byFD: map[int]watched{}}
	if err := e.listen(wake); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *exits) listen(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(e.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// add takes a pidfd over and reports when its process has ended.
func (e *exits) add(pidfd int, c *container) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byFD[pidfd], c.pidfd = watched{container: c}, pidfd
	return e.listen(pidfd)
}

// reap takes the pidfd of a child over of whose end no caller needs to know.
func (e *exits) reap(pidfd int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byFD[pidfd] = watched{}
	return e.listen(pidfd)
}

// connect takes a connection to the shim over and reports when there is something to
// read.
func (e *exits) connect(fd int, c *container) error {
	e.hold(fd, c)
	return e.attend(c)
}

// hold takes a connection to the shim over and reports nothing yet.
func (e *exits) hold(fd int, c *container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disconnect(c)
	e.byFD[fd], c.control = watched{c, true}, fd
}

// attend begins to report when there is something to read, if there is a connection.
func (e *exits) attend(c *container) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.control < 0 {
		return nil
	}
	return e.listen(c.control)
}

// duplicate returns another descriptor of the connection, to wait on, or -1.
func (e *exits) duplicate(c *container) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.control < 0 {
		return -1, nil
	}
	return unix.FcntlInt(uintptr(c.control), unix.F_DUPFD_CLOEXEC, 0)
}

// disconnect needs mu.
func (e *exits) disconnect(c *container) {
	if c.control >= 0 {
		delete(e.byFD, c.control)
		unix.Close(c.control)
		c.control = -1
	}
}

// send sends a request to a container's shim, over a new connection if need be. It
// reports false if the shim has ended.
func (e *exits) send(c *container, request control.Request) (alive bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.pidfd < 0 {
		return false, nil
	}
	if c.control >= 0 {
		if err := control.Send(c.control, request); err == nil {
			return true, nil
		}
		e.disconnect(c)
	}
	fd, err := control.Dial(c.dir.Control())
	if err != nil {
		return true, err
	}
	e.byFD[fd], c.control = watched{c, true}, fd
	if err := e.listen(fd); err != nil {
		return true, err
	}
	return true, control.Send(fd, request)
}

// receive returns the newest state that the shim has sent, and whether it is connected.
func (e *exits) receive(c *container) (state control.State, connected bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c.control >= 0 {
		next, err := control.ReceiveState(c.control)
		switch {
		case err == nil:
			state = next
		case errors.Is(err, control.ErrNothing):
			return state, true, nil
		default:
			e.disconnect(c)
			if !errors.Is(err, io.EOF) {
				return state, false, err
			}
		}
	}
	return state, false, nil
}

// ended reports whether the shim of a container is known to have ended.
func (e *exits) ended(c *container) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.pidfd < 0
}

// reached reports whether the shim of a container has ended and whether it is connected.
func (e *exits) reached(c *container) (ended, connected bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.pidfd < 0, c.control >= 0
}

// signal sends a signal to a container's shim, if that has not ended.
func (e *exits) signal(c *container, signal unix.Signal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.pidfd < 0 {
		return nil
	}
	if err := unix.PidfdSendSignal(c.pidfd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal shim: %w", err)
	}
	return nil
}

// wait returns the containers whose shims have ended and those whose shims have sent
// something, at least one unless woken up.
func (e *exits) wait() (ended, spoke []*container, err error) {
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(e.epoll, events, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, event := range events[:n] {
			if int(event.Fd) == e.wake {
				e.wokeUp()
				continue
			}
			w := e.take(int(event.Fd))
			switch {
			case w.container == nil: // the shim of a command
			case w.control:
				spoke = append(spoke, w.container)
			default:
				ended = append(ended, w.container)
			}
		}
		return ended, spoke, nil
	}
}

// take returns what a descriptor stands for. take forgets the descriptor of an ended
// shim, and reaps the shim if it was a child of this process. The descriptor that was reported may have been closed since, and
// its number belong to a shim that has just been started and has not ended.
func (e *exits) take(fd int) watched {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, known := e.byFD[fd]
	if !known || w.control {
		return w
	}
	if !hasEnded(fd) {
		return watched{}
	}
	delete(e.byFD, fd)
	if w.container != nil {
		w.pidfd = -1
	}
	// ECHILD is right for a shim that an earlier statusd started.
	_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil)
	unix.Close(fd)
	return w
}

// hasEnded reports whether the process of a pidfd has ended.
func hasEnded(pidfd int) bool {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// wakeUp lets the current wait, or the next one, return.
func (e *exits) wakeUp() {
	// It can only fail when the counter is full, and then it wakes up anyway.
	_, _ = unix.Write(e.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

// wokeUp takes the wake-up in. The runtime that takes this one's place waits on the same descriptors, and would never sleep.
func (e *exits) wokeUp() {
	_, _ = unix.Read(e.wake, make([]byte, 8))
}

func (e *exits) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for fd, w := range e.byFD {
		switch {
		case w.control:
			w.container.control = -1
		case w.container != nil:
			w.pidfd = -1
		}
		unix.Close(fd)
	}
	clear(e.byFD)
	return errors.Join(unix.Close(e.wake), unix.Close(e.epoll))
}
