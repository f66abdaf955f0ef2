package main

import (
	"testing"

	"github.com/statusd/statusd/test/mutants/mutant"
)

func TestMutantsAreUpToDate(t *testing.T) {
	mutants, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	mutant.CheckList(t, mutants, "../..")
}
