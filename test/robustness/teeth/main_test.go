package main

import (
	"testing"

	"github.com/statusd/statusd/test/mutants/mutant"
)

func TestTeethAreUpToDate(t *testing.T) {
	teeth, err := mutant.Parse(list, "invariant", "tests")
	if err != nil {
		t.Fatal(err)
	}
	mutant.CheckList(t, teeth, "../../..")
}
