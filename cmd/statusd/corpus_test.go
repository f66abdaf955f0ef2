package main

import (
	"strings"
	"testing"

	ills "github.com/statusd/statusd/test/broken"
)

// readCorpus reads the files of examples/broken.
func readCorpus(t *testing.T) []ills.Workload {
	t.Helper()
	all, err := ills.Corpus("../../examples/broken")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each broken workload says what is wrong with it, where people ask about it, and by which words an explanation is judged.
func TestCorpus_IsComplete(t *testing.T) {
	corpus := readCorpus(t)
	if len(corpus) < 80 {
		t.Errorf("%d broken workloads, want at least 80", len(corpus))
	}
	for _, one := range corpus {
		_, name, _ := strings.Cut(one.Explain, "/")
		if main := one.Objects[len(one.Objects)-1]; main.GetName() != name || name != one.Name {
			t.Errorf("%s: explains %s, and its last object is %s", one.Name, one.Explain, main.GetName())
		}
	}
}
