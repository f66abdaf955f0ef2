package environ

import (
	"slices"
	"testing"
)

func TestVariables_LastValueInFirstPlace(t *testing.T) {
	var env Variables
	for _, set := range [][2]string{{"B", "1"}, {"A", "2"}, {"B", "3"}} {
		env.Set(set[0], set[1])
	}
	if got, want := env.Strings(), []string{"B=3", "A=2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for range env.All() {
		break // stops without a panic
	}
	if value, ok := env.Lookup("A"); !ok || value != "2" {
		t.Errorf("A is %q, %v", value, ok)
	}
	if _, ok := env.Lookup("C"); ok {
		t.Error("C is set")
	}
}
