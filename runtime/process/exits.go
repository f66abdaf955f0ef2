package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// exits tells which shims have ended: one epoll over a descriptor of each. It costs
// nothing while nothing happens, and does not care who started a shim.
type exits struct {
	epoll, wake int

	mu   sync.Mutex // guards byFD and the pidfd of each container
	byFD map[int]*container
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
	e := &exits{epoll: epoll, wake: wake, byFD: map[int]*container{}}
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

// add takes a pidfd over and tells when its process has ended.
func (e *exits) add(pidfd int, c *container) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byFD[pidfd], c.pidfd = c, pidfd
	return e.listen(pidfd)
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

// wait returns the containers whose shims have ended, at least one unless woken up.
func (e *exits) wait() ([]*container, error) {
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(e.epoll, events, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var ended []*container
		for _, event := range events[:n] {
			if c := e.take(int(event.Fd)); c != nil {
				ended = append(ended, c)
			}
		}
		return ended, nil
	}
}

// take forgets the descriptor of an ended shim, and reaps it if it was our child.
func (e *exits) take(fd int) *container {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, known := e.byFD[fd]
	if !known {
		return nil // the wake-up
	}
	delete(e.byFD, fd)
	c.pidfd = -1
	// ECHILD is right for a shim that an earlier statusd started.
	_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil)
	unix.Close(fd)
	return c
}

// wakeUp lets the current wait, or the next one, return.
func (e *exits) wakeUp() {
	// It can only fail when the counter is full, and then it wakes up anyway.
	_, _ = unix.Write(e.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

func (e *exits) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for fd, c := range e.byFD {
		c.pidfd = -1
		unix.Close(fd)
	}
	clear(e.byFD)
	return errors.Join(unix.Close(e.wake), unix.Close(e.epoll))
}
