package rules

import (
	"io/fs"
	"strings"
	"testing"
)

// Each rule of the pack says what happened, what it means, what to do and where to look.
func TestPackIsComplete(t *testing.T) {
	set := Pack()
	if len(set.Rules()) < 25 {
		t.Errorf("the pack has %d rules", len(set.Rules()))
	}
	for _, r := range set.Rules() {
		for _, name := range []string{"summary", "description", "action", "runbook"} {
			if r.Annotations[name] == "" {
				t.Errorf("%s has no annotation %s", r.Name, name)
			}
		}
		if len(r.Actions) > 0 {
			t.Errorf("%s acts: actions are for operators to add", r.Name)
		}
		if r.program.loose {
			t.Errorf("%s uses time in a way of which it is not known when its truth changes", r.Name)
		}
	}
}

// Each rule of the pack has a test in which it fires, and one in which it does not.
func TestPackBehaves(t *testing.T) {
	files, err := fs.Glob(PackFiles(), "*_test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		results, err := RunTestsFS(PackFiles(), file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if len(r.Failures) > 0 {
				t.Errorf("%s:%d: %s\n%s", r.File, r.Line, r.Name, strings.Join(r.Failures, "\n"))
			}
		}
		data, err := fs.ReadFile(PackFiles(), file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parseTests(file, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range parsed.tests {
			for _, c := range test.checks {
				if c.rule != "" && len(c.alerts) == 0 {
					silent[c.rule] = true
				}
				for _, a := range c.alerts {
					fires[a.Rule] = true
				}
			}
		}
	}
	for _, r := range Pack().Rules() {
		if !fires[r.Name] || !silent[r.Name] {
			t.Errorf("%s: a test in which it fires: %v, in which it does not: %v", r.Name, fires[r.Name], silent[r.Name])
		}
	}
}
