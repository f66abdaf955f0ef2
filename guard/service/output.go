package service

import (
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// output passes on what a process writes. When the process has ended, what it has written by then is passed on, however slow the
// writer is; what it has left running may hold the pipe, and is not waited for.
type output struct {
	from *os.File      // nil: the process writes to a file, or nowhere
	done chan struct{} // closed when nothing more is passed on
}

// start starts a command whose standard output and error go to a writer, which may be nil.
func start(cmd *exec.Cmd, to io.Writer) (*output, error) {
	if _, file := to.(*os.File); file || to == nil {
		cmd.Stdout, cmd.Stderr = to, to
		return &output{}, cmd.Start()
	}
	from, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = pipe, pipe
	err = cmd.Start()
	pipe.Close()
	if err != nil {
		from.Close()
		return nil, err
	}
	o := &output{from: from, done: make(chan struct{})}
	go o.pass(to)
	return o, nil
}

func (o *output) pass(to io.Writer) {
	defer close(o.done)
	defer o.from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := o.from.Read(buffer)
		if n > 0 {
			_, _ = to.Write(buffer[:n]) // the process goes on, whatever becomes of its output
		}
		if err != nil {
			break
		}
	}
	o.passRest(to, buffer)
}

// passRest passes on what is in the pipe now.
func (o *output) passRest(to io.Writer, buffer []byte) {
	_ = o.from.SetReadDeadline(time.Time{})
	pipe, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	left := 0
	_ = pipe.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	for left > 0 {
		n := 0
		_ = pipe.Read(func(fd uintptr) bool {
			n, _ = unix.Read(int(fd), buffer[:min(left, len(buffer))])
			return true // it is there: there is nothing to wait for
		})
		if n <= 0 {
			return
		}
		_, _ = to.Write(buffer[:n])
		left -= n
	}
}

// end is called when the process has ended. It returns when what it has written is passed on, or after patience: a disk that hangs
// must not hide that a process has ended. The rest is passed on when the disk answers.
func (o *output) end(patience time.Duration) {
	if o.from == nil {
		return
	}
	_ = o.from.SetReadDeadline(time.Unix(1, 0))
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
}
