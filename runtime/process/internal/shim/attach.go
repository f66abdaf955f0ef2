package shim

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/terminal"
)

// patience is how long the container waits for a client that takes nothing. Then the client is
// detached, so that one that hangs does not stop the container.
const patience = time.Second

// maxClients bounds what clients can use up.
const maxClients = 64

// attachments are the clients that are connected to the container's streams.
type attachments struct {
	spec     record.Spec
	stdin    *os.File // nil if the container has none
	terminal *os.File // nil if the container has none

	mu       sync.Mutex // guards what follows; held while output is sent, so that all get it in one order
	listener *connection
	clients  map[*control.Connection]bool
	ended    bool
}

func newAttachments(spec record.Spec) *attachments {
	return &attachments{spec: spec, clients: map[*control.Connection]bool{}}
}

// open lets clients connect.
func (a *attachments) open(path string) error {
	fd, err := control.Listen(path)
	if err != nil {
		return err
	}
	a.listener = newConnection(fd)
	go a.accept()
	return nil
}

func (a *attachments) accept() {
	for {
		fd, err := -1, error(nil)
		waitErr := a.listener.raw.Read(func(l uintptr) bool {
			fd, err = control.Accept(int(l))
			return !errors.Is(err, unix.EAGAIN)
		})
		if waitErr != nil {
			return
		}
		if err != nil {
			continue // it was not for us, or has gone away meanwhile
		}
		client, err := control.NewConnection(fd)
		if err != nil {
			complain("attaching a client", err)
			continue
		}
		go a.serve(client)
	}
}

// serve passes the input of a client on until the client goes.
func (a *attachments) serve(client *control.Connection) {
	defer client.Close()
	buffer := make([]byte, control.MaxFrame)
	kind, data, err := client.Receive(buffer)
	if err != nil || kind != control.Attach || len(data) != 1 || !a.add(client) {
		return
	}
	defer a.remove(client)
	hasInput := data[0] == 1 && a.stdin != nil
	for {
		kind, data, err := client.Receive(buffer)
		if err != nil || kind == control.StdinEnd {
			if hasInput {
				a.inputEnded()
			}
			hasInput = false
		}
		if err != nil {
			return
		}
		switch {
		case kind == control.Stdin && hasInput:
			_, _ = a.stdin.Write(data) // a container may have closed its input
		case kind == control.Resize:
			a.resize(data)
		}
	}
}

func (a *attachments) add(client *control.Connection) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.clients) == maxClients {
		return false
	}
	if err := client.Send(patience, control.Attached, nil); err != nil {
		return false
	}
	if a.ended {
		_ = client.Send(patience, control.End, nil) // or it has gone
		return false
	}
	a.clients[client] = true
	return true
}

func (a *attachments) remove(client *control.Connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, client)
}

// inputEnded closes the input of a container that is to have one client only. A terminal stays.
func (a *attachments) inputEnded() {
	if a.spec.StdinOnce && !a.spec.TTY {
		a.stdin.Close()
	}
}

func (a *attachments) resize(data []byte) {
	width, height, ok := control.ParseSize(data)
	if !ok || a.terminal == nil {
		return
	}
	if err := terminal.Resize(a.terminal, width, height); err != nil {
		complain("resizing the terminal", err)
	}
}

// send passes output on to all clients. One that does not take it is detached.
func (a *attachments) send(kind byte, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for client := range a.clients {
		if err := client.Send(patience, kind, data); err != nil {
			delete(a.clients, client)
			client.Close()
		}
	}
}

// end detaches all clients since nothing more will come.
func (a *attachments) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	for client := range a.clients {
		_ = client.Send(patience, control.End, nil) // or it has gone
		client.Close()
	}
	clear(a.clients)
}

// writer passes on what is written to it, as output of this kind.
func (a *attachments) writer(kind byte) passOn { return passOn{a, kind} }

type passOn struct {
	to   *attachments
	kind byte
}

// Write never fails: logging continues without clients.
func (p passOn) Write(data []byte) (int, error) {
	p.to.send(p.kind, data)
	return len(data), nil
}
