package logs

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
	// count is the number of lines, including lines that no rule may match; lost is the known number of
	// lines that disappeared before they could be read.
	count, lost int
	// lostBytes is the size of lines that were gone and not counted; gone: how much was lost is not known at all.
	lostBytes int64
	gone      bool
	// origin is the origin of the lost lines.
	origin Origin
	// behind is how much is left to be read, in bytes, as far as it is known.
	behind int64
}

// reader reads one log.
type reader interface {
	name() string
	// read begins after a position, or shortly before now if the position is empty. It passes batches to
	// take, in order, and returns when ctx ends or reading fails.
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

// lostPosition is the error of a reader that can do nothing with its position.
type lostPosition struct{ why string }

func (e *lostPosition) Error() string { return "the position in the log is lost: " + e.why }
