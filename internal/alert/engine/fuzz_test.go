package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert/ruleset"
)

// FuzzStateFile: no state file panics, and what was read can be written again.
func FuzzStateFile(f *testing.F) {
	var data []byte
	for _, l := range []line{{Seen: 3}, {Alert: &storedAlert{}}, {Gone: &storedID{Rule: "x"}}, {Expired: "x"}} {
		data, _ = l.append(data)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var lines []*line
		for text := range strings.Lines(string(data)) {
			if l, err := parseLine([]byte(strings.TrimSuffix(text, "\n"))); err == nil {
				lines = append(lines, l)
			}
		}
		s := newStage(ruleset.Pack(), testStart, discard{})
		s.core.restore(lines, testStart)
		s.core.resume(testStart)
		if err := s.Advance(testStart.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.core.snapshot(); err != nil {
			t.Fatal(err)
		}
	})
}
