package ruletest

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// FuzzTestFile: no file of tests panics, or runs without an end.
func FuzzTestFile(f *testing.F) {
	addPack(f, "*_test.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parseTests("fuzz_test.yaml", data)
		checkMistakes(t, data, err)
		if err != nil {
			return
		}
		for _, test := range file.tests[:min(len(file.tests), 3)] {
			test.steps = test.steps[:min(len(test.steps), 10)]
			for i := range test.steps {
				test.steps[i].At = min(test.steps[i].At, time.Hour)
			}
			test.checks = nil
			test.run("fuzz_test.yaml", ruleset.Pack())
		}
	})
}

// FuzzRuleFile: no file panics, and each mistake is at a place in the file.
func FuzzRuleFile(f *testing.F) {
	addPack(f, "*.yaml")
	f.Add([]byte(rulesForTests))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("[\r^3&r\r^sFFFFFFaC")) // a carriage return ends a line of YAML
	f.Add([]byte("groups: [{rules: [{expr: |\n  pod.x &&\n\n   pod.y,labels: {a: '''{{ pod.x }}'}}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := ruleset.Parse("fuzz.yaml", data)
		checkMistakes(t, data, err)
	})
}

func addPack(f *testing.F, pattern string) {
	files, err := fs.Glob(ruleset.PackFiles(), pattern)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(ruleset.PackFiles(), file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

func checkMistakes(t *testing.T, data []byte, err error) {
	t.Helper()
	var mistakes rulefile.Mistakes
	if err == nil {
		return
	}
	if !errors.As(err, &mistakes) || len(mistakes) == 0 {
		t.Fatalf("got %v, want mistakes", err)
	}
	lines := rulefile.CountLines(data)
	for _, m := range mistakes {
		if m.Line < 0 || m.Line > lines+1 || m.Line > 0 && m.Column < 1 {
			t.Errorf("%v: the file has %d lines", m, lines)
		}
	}
}
