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
	mutant.CheckList(t, mutants, "../../../..")
}

func TestFindingIsReadFromTheOraclesOutput(t *testing.T) {
	got := findingIn("oracle_test.go:118: seed 1, program 26; run it alone with: make oracle\n" +
		"    oracle_test.go:119: an unwanted difference. The shortest program that shows it:\n    \n" +
		"        pod a\n        report a\n        \n    its trace:\n    pod a\n")
	if want := (finding{seed: "1", program: "26", shortest: "    pod a\n    report a\n"}); got == nil || *got != want {
		t.Errorf("the finding is read as %+v, want %+v", got, want)
	}
	if got := findingIn("panic: something else"); got != nil {
		t.Errorf("a crash is read as the finding %+v, want none", got)
	}
}
