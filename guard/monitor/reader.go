package monitor

import (
	"context"
	"time"
)

// line is one line of a log that a rule may match.
type line struct {
	origin Origin
	at     time.Time
	text   string
	id     string // its place in the log, the same each time it is read
}

// batch is what a reader has read in one go.
type batch struct {
	lines []line
	// position is where to go on after it.
	position string
	// count is how many lines there were, also those that no rule may match; lost is how many were gone
	// before they could be read, as far as it is known.
	count, lost int
	// behind is how much is left to be read, in bytes, as far as it is known.
	behind int64
}

// reader reads one log.
type reader interface {
	name() string
	// read begins after a position, at a time shortly before now if that is empty. It gives what it reads to
	// take, in order, and returns when ctx ends or it cannot go on.
	read(ctx context.Context, position string, take func(batch)) error
}

const (
	// lookback is how old lines may be when a log is read for the first time.
	lookback = 5 * time.Minute
	// maxLine is how much of a line counts.
	maxLine = 16 << 10
	// chunkSize is how much is read in one go.
	chunkSize = 256 << 10
)

// throttle keeps the work of a reader to a share of one CPU: after each piece of work it waits so much
// longer than the work took.
type throttle struct {
	share float64
	sleep func(context.Context, time.Duration) bool
	owed  time.Duration
}

// worked waits for its turn after work that took d. It reports whether ctx goes on.
func (t *throttle) worked(ctx context.Context, d time.Duration) bool {
	t.owed += time.Duration(float64(d) * (1/t.share - 1))
	if t.owed < time.Millisecond { // too short to sleep
		return ctx.Err() == nil
	}
	owed := t.owed
	t.owed = 0
	return t.sleep(ctx, owed)
}

// lostPosition is the error of a reader that can do nothing with its position.
type lostPosition struct{ why string }

func (e *lostPosition) Error() string { return "the position in the log is lost: " + e.why }
