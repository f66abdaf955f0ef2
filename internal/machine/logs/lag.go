package logs

import (
	"fmt"
	"time"

	"github.com/statusd/statusd/internal/text"
)

// Reasons of problems of the reading itself.
const (
	linesLost = "LogLinesLost"
	logBehind = "LogBehind"
)

// farBehind is how many bytes may be left to be read before that is a problem of its own: seconds of a flood.
const farBehind = 64 << 20

// remark is a problem that is not a line of a log.
type remark struct {
	line
	found
}

// lag processes how far a log was read, and returns remarks: lost lines each time, and a far lag once until the reader
// has caught up.
func (s *Source) lag(b batch, now time.Time, share float64) (list []remark) {
	s.Lost += int64(b.lost)
	s.LostBytes += b.lostBytes
	s.Behind = b.behind
	report := func(reason, format string, args ...any) {
		r := &rule{Rule: Rule{Origin: b.origin, Reason: reason, Severity: Warning}}
		list = append(list, remark{line{origin: b.origin, at: now, text: s.Name + ": " + fmt.Sprintf(format, args...), id: b.position}, found{rule: r}})
	}
	switch {
	case b.lostBytes > 0:
		report(linesLost, "%s were removed before they were read", text.Bytes(uint64(b.lostBytes)))
	case b.lost > 0:
		report(linesLost, "%d lines were gone before they were read", b.lost)
	case b.gone:
		report(linesLost, "the place up to which it was read is gone; reading begins with the oldest line that is there")
	}
	switch {
	case b.behind >= farBehind && !s.reported:
		s.reported = true
		report(logBehind, "%s are left to be read: the log is written faster than %.0f%% of one CPU can read", text.Bytes(uint64(b.behind)), share*100)
	case b.behind < farBehind/2:
		s.reported = false
	}
	return list
}
