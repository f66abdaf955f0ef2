package shim

import (
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/control"
)

// maxConnections bounds what a client that never closes can use up. There is one statusd at a time;
// further connections are left over from killed statusd processes.
const maxConnections = 16

// server has the connections of a shim. All but its goroutines, which only deliver
// events, belongs to the shim's one loop.
type server struct {
	events      chan event // unbuffered: requests wait in the sockets
	connections []*connection
}

// connection is one runtime that listens.
type connection struct {
	file *os.File
	raw  syscall.RawConn
}

// event is what a goroutine of the server has seen.
type event struct {
	from    *connection
	request control.Request
	opened  bool
	closed  bool
}

func newServer() *server { return &server{events: make(chan event)} }

// take adds a connection that exists.
func (s *server) take(fd int) *connection {
	c := newConnection(fd)
	s.connections = append(s.connections, c)
	return c
}

func newConnection(fd int) *connection {
	// A descriptor that was handed over by the start of this process may be blocking.
	_ = unix.SetNonblock(fd, true)
	file := os.NewFile(uintptr(fd), "control")
	raw, err := file.SyscallConn()
	if err != nil {
		panic(err) // of a file that is nil, which NewFile returns for a negative number
	}
	return &connection{file: file, raw: raw}
}

// receive waits for a request.
func (c *connection) receive() (request control.Request, err error) {
	waitErr := c.raw.Read(func(fd uintptr) bool {
		request, err = control.ReceiveRequest(int(fd))
		return !errors.Is(err, control.ErrNothing)
	})
	return request, errors.Join(waitErr, err)
}

func (c *connection) send(state control.State) (err error) {
	waitErr := c.raw.Control(func(fd uintptr) { err = control.Send(int(fd), state) })
	return errors.Join(waitErr, err)
}

// open lets runtimes connect.
func (s *server) open(path string) error {
	fd, err := control.Listen(path)
	if err != nil {
		return err
	}
	listener := newConnection(fd)
	go s.accept(listener)
	return nil
}

func (s *server) accept(listener *connection) {
	for {
		fd, err := -1, error(nil)
		waitErr := listener.raw.Read(func(l uintptr) bool {
			fd, err = control.Accept(int(l))
			return !errors.Is(err, unix.EAGAIN)
		})
		if waitErr != nil {
			return
		}
		if err != nil {
			continue // it was not for us, or has gone away meanwhile
		}
		s.events <- event{from: newConnection(fd), opened: true}
	}
}

// listenTo delivers the requests of a connection.
func (s *server) listenTo(c *connection) {
	for {
		request, err := c.receive()
		if err != nil {
			s.events <- event{from: c, closed: true}
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				complain("control connection", err)
			}
			return
		}
		s.events <- event{from: c, request: request}
	}
}

// handle keeps the list of connections and returns what was asked for, if anything.
func (s *server) handle(e event, state control.State) control.Request {
	switch {
	case e.opened:
		if len(s.connections) == maxConnections {
			s.drop(s.connections[0])
		}
		s.connections = append(s.connections, e.from)
		go s.listenTo(e.from)
		s.sendTo(e.from, state)
	case e.closed:
		s.drop(e.from)
	}
	return e.request
}

// report sends the state to all that listen.
func (s *server) report(state control.State) {
	for _, c := range slices.Clone(s.connections) {
		s.sendTo(c, state)
	}
}

// sendTo drops a connection that does not take the state: its runtime connects again, or
// is no more.
func (s *server) sendTo(c *connection, state control.State) {
	if err := c.send(state); err != nil {
		s.drop(c)
	}
}

func (s *server) drop(c *connection) {
	s.connections = slices.DeleteFunc(s.connections, func(other *connection) bool { return other == c })
	c.file.Close()
}
