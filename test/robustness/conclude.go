package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/robustness/judge"
	"github.com/statusd/statusd/test/robustness/record"
)

// conclude judges a history, and prints what happened in it.
func conclude(o options, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	history, err := record.Read(file)
	if err != nil {
		return err
	}
	if len(history) == 0 {
		return fmt.Errorf("%s has no records", path)
	}
	judged := scaled(history, o.patience)
	violations, excused := judge.Verdict(judged)
	sum := summarize(history, excused)
	fmt.Fprint(campaign.Out, sum)
	byInvariant := map[string]int{}
	var examples []shown
	for _, v := range violations {
		if byInvariant[v.Invariant]++; byInvariant[v.Invariant] <= 3 {
			examples = append(examples, shorten(judged, v))
		}
	}
	for _, invariant := range slices.Sorted(maps.Keys(byInvariant)) {
		fmt.Fprintf(campaign.Out, "%6d violations: %s\n", byInvariant[invariant], invariant)
	}
	for _, e := range examples {
		fmt.Fprintf(campaign.Out, "\n%s\n", e.Text)
		for _, line := range e.History {
			fmt.Fprintf(campaign.Out, "    %s\n", line)
		}
	}
	report := strings.TrimSuffix(path, filepath.Ext(path)) + ".html"
	if err := writeReport(report, history, sum, examples); err != nil {
		return err
	}
	fmt.Fprintf(campaign.Out, "\nhistory: %s, report: %s\n", path, report)
	if len(violations) > 0 {
		return fmt.Errorf("%d violations; the same faults again: make robustness SEED=%d; the same history: -replay %s", len(violations), o.seed, path)
	}
	fmt.Fprintf(campaign.Out, "0 violations of %d invariants\n", len(judge.Validators))
	return nil
}

// scaled is a history in which all took less time, as on a machine that many times as fast: its bounds are that many times as long.
func scaled(history []record.Record, times int) []record.Record {
	if times == 1 {
		return history
	}
	shorter := slices.Clone(history)
	scale := func(at int64) int64 { return history[0].At + (at-history[0].At)/int64(times) }
	for i := range shorter {
		if shorter[i].At = scale(shorter[i].At); shorter[i].Since > 0 {
			shorter[i].Since = scale(shorter[i].Since)
		}
	}
	return shorter
}

// summary is what happened in a campaign.
type summary struct {
	lasted           time.Duration
	records, changes int
	pods             map[string]bool
	faults           map[string]int
	answers          map[string]int
	injected         map[string]int // answers, of all pods and of some
	requests         int
	lags             []time.Duration
	late             []late
	excused          map[string]int // what would be violations, by what is not promised
}

func summarize(history []record.Record, excused []judge.Violation) *summary {
	s := &summary{lasted: time.Duration(history[len(history)-1].At - history[0].At), records: len(history), pods: map[string]bool{}, faults: map[string]int{}, answers: map[string]int{}, injected: map[string]int{}, excused: map[string]int{}}
	for _, v := range excused {
		s.excused[v.Invariant+": "+v.Excuse]++
	}
	for i := range history {
		r := &history[i]
		switch r.Kind {
		case record.Call:
			s.changes++
		case record.Version:
			s.pods[r.UID] = true
		case record.Fault:
			if r.Verb == record.End {
				s.faults[r.Fault]++
			}
		case record.Request:
			s.requests++
			if r.Fault != "" {
				s.answers[r.Fault]++
				s.injected[strings.TrimSuffix(r.Fault, forSome)]++
			}
		}
	}
	for _, records := range judge.Pods(history) {
		for i := range records {
			if records[i].Kind != record.Want {
				continue
			}
			l := judge.LookAt(records, i)
			s.lags = append(s.lags, l.Lag)
			if l.Lag > trueWithin && l.Lag <= records[i].Within {
				s.excused["delivered: after more than "+trueWithin.String()+", "+records[i].Fault]++
			}
			if l.Lag > 0 {
				s.late = append(s.late, late{records[i].At, records[i].Name, l.Lag})
			}
		}
	}
	return s
}

func (s *summary) String() string {
	text := fmt.Sprintf("\n%s, %d pods, %d calls of the manager, %d requests of the agent, %d records\n", s.lasted.Round(time.Second), len(s.pods), s.changes, s.requests, s.records)
	text += fmt.Sprintf("API true after the last fault of a round: %s, of %d looks at a pod\n", campaign.Spread(s.lags), len(s.lags))
	for _, excuse := range slices.Sorted(maps.Keys(s.excused)) {
		text += fmt.Sprintf("%6d  times not promised: %s\n", s.excused[excuse], excuse)
	}
	text += "\n"
	text += fmt.Sprintf("%6d  kills of the server, %d of the agent\n", s.faults[serverKilled]+s.faults[serverKept]+s.faults[record.Restored], s.faults[agentKilled]+s.faults[agentExhausted])
	for _, answer := range slices.Sorted(maps.Keys(s.injected)) {
		text += fmt.Sprintf("%6d  requests %s\n", s.injected[answer], answer)
	}
	text += "\n"
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		text += fmt.Sprintf("%6d  %s", s.faults[name], name)
		if n := s.answers[name]; n > 0 {
			text += fmt.Sprintf(" (%d answers)", n)
		}
		text += "\n"
	}
	return text
}
