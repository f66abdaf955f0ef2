package answer

import (
	"errors"
	"testing"
	"time"
)

func TestASideKeepsWhenItLastAnswered(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	r := New("here")
	if r.Answer().Known() {
		t.Error("a side that was never asked is known")
	}
	if !r.Good(at(1)) || r.Good(at(2)) {
		t.Error("the first answer alone is a recovery")
	}
	if a := r.Answer(); !a.At.Equal(at(2)) || !a.Since.Equal(at(1)) || !a.Known() {
		t.Errorf("two answers: got %+v", a)
	}
	if !r.Bad(at(3), errors.New("no")) || r.Bad(at(4), errors.New("no")) {
		t.Error("the first of two equal errors alone is news")
	}
	if a := r.Answer(); a.Known() || !a.At.Equal(at(2)) || !a.Silent.Equal(at(3)) || !a.Since.IsZero() {
		t.Errorf("silent: got %+v", a)
	}
	if !r.Good(at(5)) {
		t.Error("an answer after silence is a recovery")
	}
	if a := r.Answer(); !a.Known() || !a.Since.Equal(at(5)) || !a.Silent.IsZero() {
		t.Errorf("back: got %+v", a)
	}
	r.Gap(at(6))
	if a := r.Answer(); !a.Known() || !a.Since.Equal(at(6)) {
		t.Errorf("gap: got %+v", a)
	}
}
