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

// The faults of a round follow from the seed. Each round has one of the server and at least one of the agent, and all end within the round.
func TestPlan(t *testing.T) {
	seen := map[string]bool{}
	for n := range 300 {
		list := plan(7, n, otherFaults)
		if again := plan(7, n, otherFaults); !reflect.DeepEqual(names(list), names(again)) {
			t.Fatalf("round %d: got %q, and then %q for the same seed", n, names(list), names(again))
		}
		has := func(faults []fault) bool {
			return slices.ContainsFunc(list, func(p planned) bool {
				return slices.ContainsFunc(faults, func(f fault) bool { return f.name == p.name })
			})
		}
		if !has(serverFaults) || !has(agentFaults) || !has(otherFaults) {
			t.Errorf("round %d has %q, want faults of the server, of the agent and others", n, names(list))
		}
		for _, p := range list {
			seen[p.name] = true
			if p.after+p.during > round {
				t.Errorf("round %d: %s ends %s after its begin, want within %s", n, p.name, p.after+p.during, round)
			}
		}
	}
	for _, f := range concat(serverFaults, agentFaults, otherFaults) {
		if !seen[f.name] {
			t.Errorf("%s happens in none of 300 rounds", f.name)
		}
	}
}
