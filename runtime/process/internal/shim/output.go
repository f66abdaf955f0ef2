package shim

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/internal/logfile"
	"github.com/statusd/statusd/runtime/process/internal/control"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/terminal"
)

// output is what the command reads from and writes to.
type output struct {
	command     streams // the command's ends
	stdin       *os.File
	sources     []source
	copies      sync.WaitGroup
	attachments *attachments
}

// source is our end of something that the command writes to.
type source struct {
	kind byte
	name string
	file *os.File
}

func newOutput(spec record.Spec) (*output, error) {
	o := &output{attachments: newAttachments(spec)}
	open := o.openPipes
	if spec.TTY {
		open = o.openTerminal
	}
	if err := open(spec); err != nil {
		o.abandon()
		return nil, err
	}
	if spec.Stdin {
		o.attachments.stdin = o.stdin
	}
	return o, nil
}

func (o *output) openTerminal(spec record.Spec) error {
	master, slave, err := terminal.Open(Credential(spec.User))
	if err != nil {
		return err
	}
	o.command, o.sources = onTerminal(slave), []source{{control.Stdout, "stdout", master}}
	o.stdin, o.attachments.terminal = master, master
	return nil
}

func (o *output) openPipes(spec record.Spec) (err error) {
	for i, name := range []string{1: "stdout", 2: "stderr"} {
		if i == 0 {
			continue
		}
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		o.command.files[i] = write
		o.sources = append(o.sources, source{byte(i), name, read})
	}
	if spec.Stdin {
		o.command.files[0], o.stdin, err = os.Pipe()
	} else {
		o.command.files[0], err = os.Open(os.DevNull)
	}
	return err
}

// abandon closes what is open; closing a nil file is an error that does not matter.
func (o *output) abandon() {
	o.command.close()
	o.stdin.Close()
	for _, s := range o.sources {
		s.file.Close()
	}
}

// copyTo logs what the command writes until the last process that can write it has ended.
func (o *output) copyTo(log *logfile.Writer) {
	if !o.command.terminal { // which would seem to end when the command lets go of it for a moment
		o.command.close()
	}
	for _, s := range o.sources {
		o.copies.Go(func() {
			log.Copy(s.name, io.TeeReader(&toItsEnd{file: s.file}, o.attachments.writer(s.kind)))
		})
	}
}

// maxBuffered is more than the kernel keeps for a reader.
const maxBuffered = 1 << 20

// toItsEnd reads a file. After a read deadline it reads what the kernel holds by then, however long
// the log or a client took for what came before, and does not wait for more.
type toItsEnd struct {
	file *os.File
	late int // bytes that were read after the deadline
}

func (r *toItsEnd) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if r.late >= maxBuffered {
		return 0, io.EOF // of a process that writes on
	}
	raw, err := r.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var readErr error
	if err := raw.Control(func(fd uintptr) { n, readErr = unix.Read(int(fd), p) }); err != nil {
		return 0, err
	}
	if n <= 0 || readErr != nil {
		return 0, io.EOF
	}
	r.late += n
	return n, nil
}

// drain returns when all that was written is in the log and with the clients. The deadline is
// for a process that could not be killed and still holds a pipe.
func (o *output) drain() {
	if o.command.terminal {
		o.command.close()
	}
	deadline := time.Now().Add(drainTimeout)
	for _, s := range o.sources {
		s.file.SetReadDeadline(deadline)
	}
	o.copies.Wait()
	o.attachments.end()
	o.stdin.Close()
	for _, s := range o.sources {
		s.file.Close()
	}
}
