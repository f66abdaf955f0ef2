package ruletest

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/alert/ruleset"
)

// Each rule of the pack has a test in which it fires, and one in which it does not.
func TestPackBehaves(t *testing.T) {
	files, err := fs.Glob(ruleset.PackFiles(), "*_test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		results, err := RunFS(ruleset.PackFiles(), file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if len(r.Failures) > 0 {
				t.Errorf("%s:%d: %s\n%s", r.File, r.Line, r.Name, strings.Join(r.Failures, "\n"))
			}
		}
		data, err := fs.ReadFile(ruleset.PackFiles(), file)
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
	for _, r := range ruleset.Pack().Rules() {
		if !fires[r.Name] || !silent[r.Name] {
			t.Errorf("%s: a test in which it fires: %v, in which it does not: %v", r.Name, fires[r.Name], silent[r.Name])
		}
	}
}
