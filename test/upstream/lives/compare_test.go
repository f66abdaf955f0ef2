package main

import (
	"strings"
	"testing"
)

func TestReplaceBlockLeavesTheProseAlone(t *testing.T) {
	doc := "before\n<!-- life web -->\nold\n<!-- end -->\nafter\n<!-- life job -->\n<!-- end -->\n"
	got, err := replaceBlock(doc, "life web", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n<!-- life web -->\nnew\n<!-- end -->\nafter\n<!-- life job -->\n<!-- end -->\n"; got != want {
		t.Errorf("document is\n%s\nwant\n%s", got, want)
	}
	if _, err := replaceBlock(doc, "life db", "new\n"); err == nil || !strings.Contains(err.Error(), "life db") {
		t.Errorf("a block without a place gives %v, want an error that names the missing line", err)
	}
}

func TestTableCountsEachKindOfPair(t *testing.T) {
	pending, running := state{headline: "Pending"}, state{headline: "Running"}
	bare := state{headline: "Running", details: []string{"without an address"}}
	pairs := align(lifeOf(pending, running, gone), lifeOf(bare, state{headline: "Error"}, gone))
	if got, want := tableRow("web", pairs), "| web | 1 | 1 | 1 | 1 |"; got != want {
		t.Errorf("row is %q, want %q: gone is shared, Running differs, Pending and Error are one side's", got, want)
	}
}

func TestListingShowsDetailsOnceWhereBothAgree(t *testing.T) {
	running := state{headline: "1/1 Running", details: []string{"has a name", "has an address"}}
	bare := state{headline: "1/1 Running", details: []string{"has a name"}}
	got := sideBySide(align(lifeOf(running, gone), lifeOf(bare, gone)))
	want := `kubelet                                      statusd
 sec  READY STATUS               RESTARTS     sec  READY STATUS               RESTARTS
 0.0  1/1 Running                          ~  0.0  1/1 Running
      has a name
      < has an address
 0.0  gone                                 =  0.0  gone
`
	if got != want {
		t.Errorf("listing is\n%swant\n%s", got, want)
	}
}

func TestPodsAreAllReadable(t *testing.T) {
	lives, err := readLives(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lives {
		if l.lasts == 0 && l.pod.Spec.RestartPolicy == "" && l.pod.Spec.ActiveDeadlineSeconds == nil && len(l.pod.Spec.Containers[0].Resources.Requests) == 0 {
			t.Errorf("pod %s runs forever: it needs the annotation %s", l.pod.Name, annotationFor)
		}
	}
}
