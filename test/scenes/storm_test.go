package scenes

import (
	"slices"
	"testing"
)

// The lies of a round follow from the seed, each comes as soon as others of its kind have, and no two of a round expect the same.
func TestStorm(t *testing.T) {
	all := Lies()
	names := func(lies []Lie) (names []string) {
		for _, lie := range lies {
			names = append(names, lie.Name)
		}
		return names
	}
	seen := map[string]int{}
	for round := range 2 * len(all) {
		lies := names(Storm(7, round, all))
		if again := names(Storm(7, round, all)); !slices.Equal(lies, again) {
			t.Fatalf("round %d: got %q, and then %q for the same seed", round, lies, again)
		}
		if len(lies) == 0 {
			t.Fatalf("round %d has no lie", round)
		}
		for _, name := range lies {
			seen[name]++
		}
	}
	for _, lie := range all {
		if seen[lie.Name] == 0 {
			t.Errorf("%q comes in none of %d rounds", lie.Name, 2*len(all))
		}
	}
	one := slices.DeleteFunc(Lies(), func(lie Lie) bool { return lie.Name != "a clone of the node" })
	if got := names(Storm(7, 3, one)); len(got) != 1 {
		t.Errorf("of one lie, got %q", got)
	}
}
