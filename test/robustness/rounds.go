package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/robustness/agent"
	"github.com/statusd/statusd/test/robustness/judge"
	"github.com/statusd/statusd/test/robustness/record"
)

const (
	// trueWithin is how soon after the last fault the API has to be true, someWithin how soon if only some pods were refused, which are tried
	// each 30 s, and laterWithin how soon after a webhook or a restore.
	trueWithin, someWithin, laterWithin = 15 * time.Second, 36 * time.Second, 60 * time.Second
	// patience is how long a late status is waited for, so that the report can say how late.
	patience = 90 * time.Second
	// round is how long faults last, and calls how long an answer of the manager may take without a fault. Calls that are on are waited for a
	// shorter time, since some are for pods that the watch of the agent has yet to bring.
	round, calls, busyFor = 20 * time.Second, 30 * time.Second, 12 * time.Second
	// hungEvery is which calms are on a disk that hangs, and hungTraffic how long there is traffic on such a disk before.
	hungEvery, hungTraffic = 3, 3 * time.Second
)

// planned is a fault of a round.
type planned struct {
	fault
	after, during time.Duration
}

// perRound is how many faults of a kind a round has, one more in every other round where it says so, and how long each lasts at least and at most.
var perRound = []struct {
	kind        kind
	least       int
	more        bool
	short, long time.Duration
}{
	{ofServer, 1, true, 2 * time.Second, 8 * time.Second}, {ofAgent, 1, true, 2 * time.Second, 10 * time.Second},
	{ofAnswers, 3, false, 5 * time.Second, 15 * time.Second}, {ofOthers, 2, true, 2 * time.Second, 10 * time.Second},
}

// kind is a kind of faults.
type kind int

const (
	ofServer kind = iota
	ofAgent
	ofAnswers
	ofOthers
)

// faultsOf are the faults of each kind whose names match. Of the server's and the agent's these are all if none matches.
func faultsOf(matches func(name string) bool) map[kind][]fault {
	matching := func(all []fault) []fault {
		return slices.DeleteFunc(slices.Clone(all), func(f fault) bool { return !matches(f.name) })
	}
	orAll := func(all []fault) []fault {
		if of := matching(all); len(of) > 0 {
			return of
		}
		return all
	}
	return map[kind][]fault{ofServer: orAll(serverFaults), ofAgent: orAll(agentFaults), ofAnswers: matching(answerFaults), ofOthers: matching(otherFaults)}
}

// plan is the same for the same seed and round. The faults of a kind come in turn, in an order that changes when all have come: each as often as
// another.
func plan(seed uint64, n int, faults map[kind][]fault) (list []planned) {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	for _, per := range perRound {
		of, count, before := faults[per.kind], per.least, n*per.least
		if len(of) == 0 {
			continue
		}
		if per.more {
			count, before = count+n%2, before+n/2
		}
		for turn := before; turn < before+count; turn++ {
			order := rand.New(rand.NewPCG(seed, uint64(per.kind+1)<<32|uint64(turn/len(of)))).Perm(len(of))
			during := per.short + upTo(per.long-per.short)
			list = append(list, planned{of[order[turn%len(of)]], upTo(round - during), during})
		}
	}
	return list
}

// rounds has faults happen and looks whether the API is true after them, until the time is over or there were enough.
func (s *storm) rounds(ctx context.Context) error {
	end := time.Now().Add(s.options.duration)
	if err := s.calm(ctx, "before any fault", false); err != nil {
		return err
	}
	for n := 0; n < s.options.rounds || s.options.rounds == 0 && time.Now().Before(end); n++ {
		if err := s.storm(ctx, n); err != nil {
			return err
		}
		if err := s.calm(ctx, fmt.Sprintf("after round %d", n), n%hungEvery == hungEvery-1); err != nil {
			return err
		}
		if s.options.untilViolation {
			if history, err := s.soFar(); err != nil || len(judge.Judge(scaled(history, s.options.patience))) > 0 {
				return err
			}
		}
	}
	return nil
}

// soFar is the history until now.
func (s *storm) soFar() ([]record.Record, error) {
	s.history.Add(record.Record{Kind: record.Mark})
	if err := s.history.Flush(); err != nil {
		return nil, err
	}
	file, err := os.Open(s.options.path())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return record.Read(file)
}

// storm has the faults of a round happen.
func (s *storm) storm(ctx context.Context, n int) error {
	var all sync.WaitGroup
	for _, f := range plan(s.options.seed, n, s.options.faults) {
		all.Go(func() {
			if pause(ctx, f.after) != nil {
				return
			}
			s.history.Add(record.Record{Kind: record.Fault, Fault: f.name, Verb: record.Begin})
			r := record.Record{Kind: record.Fault, Fault: f.name, Verb: record.End}
			if err := f.happen(s, ctx, f.during); err != nil && ctx.Err() == nil {
				r.Err = err.Error()
				fmt.Fprintf(campaign.Out, "round %d: %s: %v\n", n, f.name, err)
			}
			if f.name != record.Restored { // that fault has recorded itself, when the data were taken back
				s.history.Add(r)
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// calm ends the traffic, and waits until the API is true. What was wrong for too long, the validators find in the history. On a disk that hangs
// the API has to be true all the same: no status waits for the disk.
func (s *storm) calm(ctx context.Context, when string, hung bool) error {
	if hung {
		s.current().send(agent.Command{Verb: agent.Disk, Disk: agent.Hung})
		if err := pause(ctx, hungTraffic); err != nil {
			return err
		}
		when += ", on a disk that hangs"
	}
	began := time.Now()
	s.paused.Store(true)
	defer s.paused.Store(false)
	for until := began.Add(s.options.bound(busyFor)); s.truth.busy() > 0 && time.Now().Before(until); {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if err := s.hooksOff(ctx); err != nil { // a restore may have brought one back
		return err
	}
	s.current().send(s.truth.settle()...)
	within, because := trueWithin, ""
	s.mu.Lock()
	if later := laterWithin - began.Sub(s.restored); !s.restored.IsZero() && later > within {
		within, because = later, "after a restore"
	}
	if later := laterWithin - began.Sub(s.hooked); !s.hooked.IsZero() && later > within {
		within, because = later, "after a webhook"
	}
	s.refused = slices.DeleteFunc(s.refused, func(r refusal) bool { return began.Sub(r.until) > someWithin })
	refused := slices.Clone(s.refused)
	s.mu.Unlock()
	wanted := time.Now()
	at := record.Now()
	for _, want := range s.truth.wants() {
		want.At, want.Within, want.Fault = at, within, because
		some := within
		for _, r := range refused {
			if r.IsFor(want.Name) {
				some = max(some, someWithin-began.Sub(r.until))
			}
		}
		if some > within && !want.Absent { // readiness and phase are not late
			grave := *want.Facts
			grave.Number = record.Any
			s.history.Add(record.Record{Kind: record.Want, At: at, Within: within, Fault: because, UID: want.UID, Name: want.Name, Facts: &grave})
		}
		if some > within {
			want.Within, want.Fault = some, "of a pod refused alone"
		}
		s.history.Add(want)
	}
	var differing []string
	for {
		if differing = s.truth.differing(); len(differing) == 0 || time.Since(wanted) > s.options.bound(patience) {
			break
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	took := time.Since(wanted)
	s.current().send(agent.Command{Verb: agent.Disk, Disk: agent.Healthy}, agent.Command{Verb: agent.Look, Wait: s.options.bound(10 * time.Second), Calm: true})
	select {
	case <-s.current().looks:
	case <-time.After(s.options.bound(calls)):
		fmt.Fprintf(campaign.Out, "%s: the agent does not answer\n", when)
	case <-ctx.Done():
		return ctx.Err()
	}
	fmt.Fprintf(campaign.Out, "%s: true after %s of %s; %d changes\n", when, took.Round(time.Millisecond), within, s.truth.changes())
	for i, d := range differing {
		if i < 5 {
			fmt.Fprintf(campaign.Out, "  %s\n", d)
		}
	}
	return nil
}

// changes is how many changes were reported.
func (t *truth) changes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
