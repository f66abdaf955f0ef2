// Package answer keeps when a side answered, and since when it does or does not.
package answer

import (
	"time"

	"github.com/statusd/statusd/internal/audit"
)

// Record is the answer of a side over time. It is not safe for concurrent use.
type Record struct {
	answer audit.Answer
}

// New makes the record of a side that was not queried yet.
func New(from string) Record {
	return Record{audit.Answer{From: from, Err: "not asked yet"}}
}

// Answer returns the answer as it is now.
func (r *Record) Answer() audit.Answer { return r.answer }

// From changes the queried source.
func (r *Record) From(from string) { r.answer.From = from }

// Good notes that the facts were complete and current at a time. Good reports whether the side did not
// answer before.
func (r *Record) Good(at time.Time) bool {
	recovered := r.answer.Err != ""
	r.answer.Err, r.answer.Silent = "", time.Time{}
	if recovered || r.answer.Since.IsZero() {
		r.answer.Since = at
	}
	r.answer.At = at
	return recovered
}

// Gap notes that the answers have a gap that no error shows: the side may have been restarted.
func (r *Record) Gap(at time.Time) {
	if r.answer.Err == "" {
		r.answer.Since = at
	}
}

// Bad records that the side did not answer, and why. Bad reports whether the reason is new.
func (r *Record) Bad(at time.Time, err error) bool {
	text := err.Error()
	news := r.answer.Err != text
	r.answer.Err, r.answer.Since = text, time.Time{}
	if r.answer.Silent.IsZero() {
		r.answer.Silent = at
	}
	return news
}
