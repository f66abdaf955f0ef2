package rules

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/view"
)

// FuzzExpression: no expression panics or takes longer than its budget, in any scope.
func FuzzExpression(f *testing.F) {
	for _, r := range Pack().Rules() {
		f.Add(r.Expr, string(r.Scope))
	}
	for _, h := range hostile {
		f.Add(h.expr, "pod")
	}
	f.Add(`now - pod.created > duration("1h") && duration("-1s") < durationIn("x") - duration("9223372036s")`, "pod")
	c, err := newCompiler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source, scope string) {
		env := Scope(scope)
		if c.envs[env] == nil {
			return
		}
		expr, faults := c.compile(env, source, templateTypes...)
		if expr == nil {
			if len(faults) == 0 {
				t.Fatal("refused without a reason")
			}
			for _, f := range faults {
				if offset := offsetOf(source, f.line, f.column); f.line < 1 || f.column < 1 || offset > len(source) {
					t.Errorf("%+v is outside the expression", f)
				}
			}
			return
		}
		s := newStage(&Set{}, testStart)
		for _, step := range []testStep{{what: phase("web", "Running")}, {at: time.Minute, what: phase("web", "Failed")}} {
			if err := s.take(step); err != nil {
				t.Fatal(err)
			}
		}
		m := s.moment(t)
		_, err := expr.evaluate(context.Background(), m)
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Errorf("%s: %v", source, err)
		}
		if !m.next.IsZero() && !m.next.After(m.now) {
			t.Errorf("%s: the next look at %v is not after %v", source, m.next, m.now)
		}
	})
}

// moment is one of the pod web, with all that any scope has.
func (s *stage) moment(t *testing.T) *moment {
	detail, ok := s.scene.Pod("default.web")
	records, _ := s.scene.History("default", "web")
	if !ok {
		t.Fatal("no pod")
	}
	m := &moment{now: s.now, records: records.Records, change: &records.Records[0]}
	facts := podFactsOf(detailOf(s, detail.Facts.Pod.UID))
	facts.containers = []containerFacts{{pod: facts}}
	m.pod = &object{typ: podType, at: m, v: facts}
	m.container = &object{typ: containerType, at: m, v: &facts.containers[0]}
	m.node = &object{typ: nodeType, at: m, v: nodeFactsOf(s.scene.Node(), s.core.counts, s.now)}
	m.kubelet = &object{typ: kubeletType, at: m, v: &kubeletFacts{}}
	return m
}

// FuzzRuleFile: no file panics, and each mistake is at a place in the file.
func FuzzRuleFile(f *testing.F) {
	addPack(f, "*.yaml")
	f.Add([]byte(rulesForTests))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("[\r^3&r\r^sFFFFFFaC")) // a carriage return ends a line of YAML
	f.Add([]byte("groups: [{rules: [{expr: |\n  pod.x &&\n\n   pod.y,labels: {a: '''{{ pod.x }}'}}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Parse("fuzz.yaml", data)
		checkMistakes(t, data, err)
	})
}

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
				test.steps[i].at = min(test.steps[i].at, time.Hour)
			}
			test.checks = nil
			test.run("fuzz_test.yaml", Pack())
		}
	})
}

// FuzzStateFile: no state file panics, and what was read can be written again.
func FuzzStateFile(f *testing.F) {
	var data []byte
	for _, l := range []line{{Seen: 3}, {Alert: &storedAlert{}}, {Gone: &storedID{Rule: "x"}}, {Expired: "x"}} {
		data, _ = l.append(data)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var lines []*line
		for text := range strings.Lines(string(data)) {
			if l, err := parseLine([]byte(strings.TrimSuffix(text, "\n"))); err == nil {
				lines = append(lines, l)
			}
		}
		s := newStage(Pack(), testStart, discard{})
		s.core.restore(lines, testStart)
		s.core.resume(testStart)
		if err := s.advance(testStart.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.core.snapshot(); err != nil {
			t.Fatal(err)
		}
	})
}

func addPack(f *testing.F, pattern string) {
	files, err := fs.Glob(PackFiles(), pattern)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(PackFiles(), file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

func checkMistakes(t *testing.T, data []byte, err error) {
	t.Helper()
	var mistakes Mistakes
	if err == nil {
		return
	}
	if !errors.As(err, &mistakes) || len(mistakes) == 0 {
		t.Fatalf("got %v, want mistakes", err)
	}
	lines := strings.Split(lineBreaks.Replace(string(data)), "\n")
	for _, m := range mistakes {
		if m.Line < 0 || m.Line > len(lines)+1 || m.Line > 0 && m.Column < 1 {
			t.Errorf("%v: the file has %d lines", m, len(lines))
		}
	}
}

func detailOf(s *stage, uid types.UID) view.PodDetail {
	d, _ := view.Describe(s.core.source, uid)
	return d
}
