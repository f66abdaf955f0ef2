package process

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/terminal"
)

// pipes connect a client to a command that is executed inside a container.
type pipes struct {
	theirs   []*os.File  // the command's ends: three, or one of a terminal
	input    *os.File    // nil if the client has none
	outputs  [2]*os.File // nil if the client takes none
	terminal *os.File    // nil without a terminal
	copies   outputs
}

func openPipes(streams runtime.Streams, owner *syscall.Credential) (p *pipes, err error) {
	p = &pipes{copies: outputs{stop: make(chan struct{})}}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if streams.TTY {
		return p, p.openTerminal(streams, owner)
	}
	if p.input, err = p.open(streams.Stdin != nil, true); err != nil {
		return p, err
	}
	for i, wanted := range []bool{streams.Stdout != nil, streams.Stderr != nil} {
		if p.outputs[i], err = p.open(wanted, false); err != nil {
			return p, err
		}
	}
	return p, nil
}

// open adds one end for the command and returns ours, nil if it is not wanted.
func (p *pipes) open(wanted, weWrite bool) (ours *os.File, err error) {
	var read, write *os.File
	if wanted {
		read, write, err = os.Pipe()
	} else {
		read, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	if weWrite || !wanted {
		p.theirs = append(p.theirs, read)
		return write, nil
	}
	p.theirs = append(p.theirs, write)
	return read, nil
}

func (p *pipes) openTerminal(streams runtime.Streams, owner *syscall.Credential) error {
	master, slave, err := terminal.Open(owner)
	if err != nil {
		return err
	}
	p.terminal, p.theirs = master, []*os.File{slave}
	if streams.Stdin != nil {
		p.input = master
	}
	p.outputs[0] = master // read even if the client takes nothing, or the command would wait
	select {
	case size, open := <-streams.Resize: // the command begins with the right one if it is known
		if open {
			p.setSize(size)
		}
	default:
	}
	return nil
}

func (p *pipes) setSize(size runtime.TerminalSize) {
	_ = terminal.Resize(p.terminal, size.Width, size.Height) // of a terminal that the command has left
}

// copy starts to copy. A client that takes no output any more ends the command.
func (p *pipes) copy(streams runtime.Streams, cancel context.CancelCauseFunc) {
	if p.input != nil {
		go p.copyInput(streams.Stdin) // ends with the client, which may be later
	}
	if streams.TTY && streams.Resize != nil {
		p.copies.Go(func() { p.resize(streams.Resize, p.copies.stop) })
	}
	if streams.Stdout == nil {
		streams.Stdout = dropped{}
	}
	for i, from := range p.outputs {
		if from == nil {
			continue
		}
		to := streams.Stdout
		if i == 1 {
			to = streams.Stderr
		}
		p.copies.Go(func() {
			if err := copyOutput(from, to); err != nil {
				cancel(fmt.Errorf("client takes no output: %w", err))
			}
		})
	}
}

type dropped struct{}

func (dropped) Write(p []byte) (int, error) { return len(p), nil }

func (p *pipes) closeTheirs() {
	for _, file := range p.theirs {
		file.Close()
	}
	p.theirs = nil
}

// close closes what is open; closing a nil file is an error that does not matter, and so is
// closing a terminal under several names.
func (p *pipes) close() {
	p.closeTheirs()
	p.input.Close()
	p.outputs[0].Close()
	p.outputs[1].Close()
	p.terminal.Close()
}
