package main

import (
	"reflect"
	"slices"
	"testing"
)

// names are the faults of a round, with their times.
func names(list []planned) (names []string) {
	for _, p := range list {
		names = append(names, p.after.String()+" "+p.name+" "+p.during.String())
	}
	return names
}

// The faults of a round follow from the seed. Each round has faults of all kinds, all of which end within the round, and no answer is left out.
func TestPlan(t *testing.T) {
	all := faultsOf(func(string) bool { return true })
	seen := map[string]int{}
	for n := range 300 {
		list := plan(7, n, all)
		if again := plan(7, n, all); !reflect.DeepEqual(names(list), names(again)) {
			t.Fatalf("round %d: got %q, and then %q for the same seed", n, names(list), names(again))
		}
		has := func(faults []fault) bool {
			return slices.ContainsFunc(list, func(p planned) bool {
				return slices.ContainsFunc(faults, func(f fault) bool { return f.name == p.name })
			})
		}
		if !has(serverFaults) || !has(agentFaults) || !has(answerFaults) || !has(otherFaults) {
			t.Errorf("round %d has %q, want faults of the server, of the agent, answers and others", n, names(list))
		}
		for _, p := range list {
			seen[p.name]++
			if p.after+p.during > round {
				t.Errorf("round %d: %s ends %s after its begin, want within %s", n, p.name, p.after+p.during, round)
			}
		}
	}
	for _, faults := range [][]fault{answerFaults, otherFaults} {
		for _, f := range faults {
			if got, first := seen[f.name], seen[faults[0].name]; got < first-1 || got > first+1 {
				t.Errorf("%s happens %d times and %s %d times, want them as often as each other", f.name, got, faults[0].name, first)
			}
		}
	}
	for _, f := range concat(serverFaults, agentFaults) {
		if seen[f.name] == 0 {
			t.Errorf("%s happens in none of 300 rounds", f.name)
		}
	}
}
