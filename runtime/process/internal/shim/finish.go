package shim

import (
	"errors"
	"io/fs"
	"time"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// Writing the record of an exit is retried after these pauses, each twice as long as the previous.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// finish records the exit. While it cannot, it reports the exit to each runtime that
// connects: a container that has ended must not look as if it ran because a disk is full.
// finish gives up when the directory is gone or the runtime needs the record no longer.
func (s *shim) finish(exit record.Exit) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := record.WriteDurably(s.dir.Exit(), exit)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		if s.state.Exit == nil {
			complain("recording the exit; trying again until it is possible", err)
			s.state.Exit = &exit
			s.server.report(s.state)
		}
		if s.serve(pause) {
			return
		}
	}
}

// serve handles requests for a while. serve reports whether the shim is to end.
func (s *shim) serve(pause time.Duration) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	for {
		select {
		case event := <-s.server.events:
			if request := s.server.handle(event, s.state); request.Forget {
				return true
			}
		case <-over.C:
			return false
		case <-s.signals.children:
			s.reap()
		case <-s.signals.stop:
		case <-s.signals.ignored:
		}
	}
}
