package eviction

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Observation is the available amount and the capacity of a resource. A capacity of 0 means that
// the machine does not count it.
type Observation struct{ Available, Capacity uint64 }

// Observations are the values read, by signal. A missing signal was not read.
type Observations map[Signal]Observation

// crossed are the thresholds below which the machine is. With reclaim the minimum reclaim
// has to be available as well.
func crossed(thresholds []Threshold, seen Observations, reclaim bool) []Threshold {
	var found []Threshold
	for _, t := range thresholds {
		o, known := seen[t.Signal]
		if !known || o.Capacity == 0 {
			continue
		}
		least := t.Below.Of(o.Capacity)
		if reclaim {
			least += t.MinReclaim.Of(o.Capacity)
		}
		if o.Available < least {
			found = append(found, t)
		}
	}
	return found
}

// pressure is the state between two looks. Values are immutable.
type pressure struct {
	// since is when each threshold that is crossed was first seen crossed.
	since map[Threshold]time.Time
	// last is when each condition was last seen.
	last map[v1.NodeConditionType]time.Time
	// acted are the thresholds that were due: they stay crossed until the minimum reclaim
	// is available as well.
	acted []Threshold
}

// next is the memory after a look, and the thresholds that are due: crossed for as long as
// their grace.
func (p pressure) next(thresholds []Threshold, seen Observations, now time.Time) (after pressure, due []Threshold) {
	over := crossed(thresholds, seen, false)
	for _, t := range crossed(p.acted, seen, true) {
		if !slices.Contains(over, t) {
			over = append(over, t)
		}
	}
	slices.SortStableFunc(over, compareThresholds)
	after = pressure{since: map[Threshold]time.Time{}, last: map[v1.NodeConditionType]time.Time{}}
	for condition, at := range p.last {
		after.last[condition] = at
	}
	for _, t := range over {
		since, known := p.since[t]
		if !known {
			since = now
		}
		after.since[t] = since
		after.last[t.Signal.condition()] = now
		if now.Sub(since) >= t.Grace {
			due = append(due, t)
		}
	}
	after.acted = due
	return after, due
}

// conditions returns the conditions observed within the transition period, sorted by name. Without
// the period, a node near a threshold would flap.
func (p pressure) conditions(transition time.Duration, now time.Time) []v1.NodeConditionType {
	var found []v1.NodeConditionType
	for condition, at := range p.last {
		if at.Equal(now) || now.Sub(at) < transition {
			found = append(found, condition)
		}
	}
	slices.Sort(found)
	return found
}
