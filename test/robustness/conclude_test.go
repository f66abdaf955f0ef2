package main

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/test/robustness/judge"
	"github.com/statusd/statusd/test/robustness/record"
)

// On a slow machine all may take longer, but not forever.
func TestScaled(t *testing.T) {
	begin := time.Now()
	at := func(after time.Duration) int64 { return begin.Add(after).UnixNano() }
	facts := &record.Facts{Number: 1, Phase: v1.PodRunning}
	history := []record.Record{
		{At: at(0), Kind: record.Call, Agent: 1, ID: 1, Verb: record.Run, UID: "a", Name: "web", Facts: facts},
		{At: at(1), Kind: record.Return, Agent: 1, ID: 1, Verb: record.Run, UID: "a", Name: "web"},
		{At: at(time.Second), Kind: record.Want, UID: "a", Name: "web", Facts: facts, Within: 15 * time.Second},
		{At: at(time.Minute), Kind: record.Version, UID: "a", Name: "web", RV: 1, Facts: facts},
	}
	late := func(history []record.Record) bool { return len(judge.Judge(history)) > 0 }
	if !late(scaled(history, 1)) || late(scaled(history, 10)) {
		t.Error("want a status that takes a minute to be late, and in time on a machine with ten times the patience")
	}
	history[3].At = at(time.Hour)
	if !late(scaled(history, 10)) {
		t.Error("want a status that takes an hour to be late with ten times the patience, too")
	}
}
