package shim

import (
	"os"
	"sync"
	"time"

	"github.com/statusd/statusd/runtime/process/internal/logfile"
)

// output is what the command writes to.
type output struct {
	stdout, stderr pipe
	copies         sync.WaitGroup
}

type pipe struct{ read, write *os.File }

func newOutput() (*output, error) {
	o := &output{}
	for _, p := range []*pipe{&o.stdout, &o.stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			o.abandon()
			return nil, err
		}
		*p = pipe{read, write}
	}
	return o, nil
}

// abandon closes what is open; closing a nil file is an error that does not matter.
func (o *output) abandon() {
	for _, f := range []*os.File{o.stdout.read, o.stdout.write, o.stderr.read, o.stderr.write} {
		f.Close()
	}
}

// copyTo logs both streams until the last process that can write to them has ended.
func (o *output) copyTo(log *logfile.Writer) {
	o.stdout.write.Close()
	o.stderr.write.Close()
	o.copies.Go(func() { log.Copy("stdout", o.stdout.read) })
	o.copies.Go(func() { log.Copy("stderr", o.stderr.read) })
}

// drain returns when all that was written is in the log. The deadline is for a process
// that could not be killed and still holds a pipe.
func (o *output) drain() {
	deadline := time.Now().Add(drainTimeout)
	o.stdout.read.SetReadDeadline(deadline)
	o.stderr.read.SetReadDeadline(deadline)
	o.copies.Wait()
	o.stdout.read.Close()
	o.stderr.read.Close()
}
