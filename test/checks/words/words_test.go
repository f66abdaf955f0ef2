package main

import (
	"slices"
	"testing"
)

func TestJudge_SentencesOfEachKind_AreFound(t *testing.T) {
	for sentence, want := range map[string]string{
		"The lease is old. It is renewed by another program.":         "begins with a pronoun",
		"Restarted by the one that crashed.":                          "the one that, those that",
		"The times are those of the kubelet.":                         "that of, those of",
		"The node has none.":                                          "is none, is one",
		"The kubelet is stopped after that.":                          "after that, of those",
		"Whoever asks is answered.":                                   "quaint words",
		"The lease is old: it is renewed by another program.":         "",
		"A pod whose containers have ended is not restarted.":         "",
		"The report says that the kubelet is down, and for how long.": "",
	} {
		var kinds []string
		for _, p := range judge(inComments, "f", 1, sentence) {
			kinds = append(kinds, p.kind)
		}
		if want == "" && len(kinds) > 0 || want != "" && !slices.Equal(kinds, []string{want}) {
			t.Errorf("%q: got %q, want %q", sentence, kinds, want)
		}
	}
}

func TestDocument_CodeAndComments_AreNotRead(t *testing.T) {
	text := "# Title\n\nIt is\nold. <!-- It is hidden. -->\n\n    It is code.\n\n```\nIt is code.\n```\n| a | It is a cell. |\n"
	var lines []int
	for _, p := range document("f", text) {
		lines = append(lines, p.line)
	}
	if want := []int{3, 11}; !slices.Equal(lines, want) {
		t.Errorf("got lines %d, want %d", lines, want)
	}
}

// Errors, help, log lines and metrics are read without the code around them.
func TestStringsOfThePrograms_NameTheirNoun(t *testing.T) {
	const root = "../../.."
	files, err := tree(root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := count(root, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Error("nothing found in comments and documents; the patterns match nothing")
	}
	for _, p := range found {
		if p.source == inStrings {
			t.Error(p)
		}
	}
}
