package main

import (
	"strings"
	"testing"
)

func TestReplaceListingLeavesTheProseAlone(t *testing.T) {
	doc := "before\n<!-- life web -->\nold\n<!-- end -->\nafter\n<!-- life job -->\n<!-- end -->\n"
	got, err := replaceListing(doc, "web", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n<!-- life web -->\n```\nnew\n```\n<!-- end -->\nafter\n<!-- life job -->\n<!-- end -->\n"; got != want {
		t.Errorf("document is\n%s\nwant\n%s", got, want)
	}
	if _, err := replaceListing(doc, "db", "new\n"); err == nil || !strings.Contains(err.Error(), "life db") {
		t.Errorf("a listing without a place gives %v, want an error that names the missing line", err)
	}
}

func TestListingBreaksLongLinesAtSpaces(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 40))
	s := state{headline: "0/1 Running", details: []string{long}}
	text := sideBySide(align(lifeOf(s), lifeOf(s)))
	for l := range strings.Lines(text) {
		if len(l) > 2*column+len(" = \n") {
			t.Errorf("line is %d long, want at most two columns: %q", len(l), l)
		}
	}
	if got, want := strings.Count(text, "word"), 80; got != want {
		t.Errorf("%d words are listed, want %d: each side in full\n%s", got, want, text)
	}
}

func TestPodsAreAllReadable(t *testing.T) {
	lives, err := readLives(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lives {
		if l.lasts == 0 && l.pod.Spec.RestartPolicy == "" && l.pod.Spec.ActiveDeadlineSeconds == nil && len(l.pod.Spec.Containers[0].Resources.Requests) == 0 {
			t.Errorf("pod %s runs for ever: it needs the annotation %s", l.pod.Name, annotationFor)
		}
	}
}
