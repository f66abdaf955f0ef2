package main

import "testing"

// TestMutantsAreUpToDate fails when the code that a mutant changes has moved on, so that this
// is noticed without a run of all of them.
func TestMutantsAreUpToDate(t *testing.T) {
	mutants, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) == 0 {
		t.Fatal("mutants.txt lists none")
	}
	for _, m := range mutants {
		if _, err := m.Apply("../.."); err != nil {
			t.Errorf("invariant %s, without %s: %v", m.Guards, m.Without, err)
		}
	}
}
