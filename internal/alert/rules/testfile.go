package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

// KindTests is the kind of a file of tests.
const KindTests = "RuleTests"

// testFile is a file of tests.
type testFile struct {
	file  string
	rules []string
	tests []*testCase
}

type testCase struct {
	name   string
	line   int
	start  time.Time
	steps  []testStep
	checks []testCheck
}

// testStep is what becomes known at an instant. Each part is merged with what was known before.
type testStep struct {
	at   time.Duration
	node *yaml.Node
	// what is a map of the keys of the step.
	what map[string]any
}

type testCheck struct {
	at     time.Duration
	line   int
	rule   string
	alerts []wantedAlert
}

// wantedAlert is an alert that a test expects. Labels and annotations that are not named are not compared.
type wantedAlert struct {
	Rule        string            `json:"rule"`
	State       string            `json:"state"`
	Pod         string            `json:"pod"`
	Container   string            `json:"container"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

const (
	maxTests = 1000
	maxSteps = 1000
	// maxTestTime is how long the timeline of a test may be.
	maxTestTime = 31 * 24 * time.Hour
)

// testStart is when the timeline of a test begins, unless it says otherwise.
var testStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// parseTests reads a file of tests.
func parseTests(file string, data []byte) (*testFile, error) {
	l := &loader{names: map[string]string{}}
	f := &testFile{file: file}
	if len(data) > maxFile {
		return nil, Mistakes{{File: file, Message: fmt.Sprintf("the file has %d bytes, at most %d are allowed", len(data), maxFile)}}
	}
	l.notEmpty(KindTests+", tests", file, data, func(n *yaml.Node) {
		l.fields(n, "the file", []key{
			{"apiVersion", true, l.constant(APIVersion)},
			{"kind", true, l.constant(KindTests)},
			{"rules", false, l.each(func(n *yaml.Node) {
				var name string
				l.text(&name)(n)
				f.rules = append(f.rules, name)
			})},
			{"tests", true, l.each(func(n *yaml.Node) { l.test(n, f) })},
		})
	})
	if len(f.tests) > maxTests {
		l.mistakes = append(l.mistakes, Mistake{File: file, Message: fmt.Sprintf("there are more than %d tests", maxTests)})
	}
	if len(l.mistakes) > 0 {
		l.mistakes.sort()
		return nil, l.mistakes
	}
	return f, nil
}

func (l *loader) test(n *yaml.Node, f *testFile) {
	t := &testCase{line: n.Line, start: testStart}
	l.fields(n, "a test", []key{
		{"name", true, l.text(&t.name)},
		{"start", false, func(n *yaml.Node) {
			var err error
			if t.start, err = time.Parse(time.RFC3339, n.Value); err != nil {
				l.mistake(n, "is %s, want a time such as 2026-01-01T00:00:00Z", kindOf(n))
			}
		}},
		{"timeline", true, l.each(func(n *yaml.Node) { l.testStep(n, t) })},
		{"expect", true, l.each(func(n *yaml.Node) { l.check(n, t) })},
	})
	if len(t.steps)+len(t.checks) > maxSteps {
		l.mistake(n, "a test has at most %d steps", maxSteps)
	}
	f.tests = append(f.tests, t)
}

func (l *loader) testStep(n *yaml.Node, t *testCase) {
	s := testStep{node: n, what: map[string]any{}}
	take := func(name string) key {
		return key{name, false, func(n *yaml.Node) {
			var value any
			if err := n.Decode(&value); err != nil {
				l.mistake(n, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
				return
			}
			s.what[name] = value
		}}
	}
	l.fields(n, "a step", []key{
		{"at", true, l.moment(&s.at)},
		take("pod"), take("containers"), take("delivery"), take("differences"), take("records"), take("gone"),
		take("node"), take("kubelet"), take("clock"),
	})
	if len(t.steps) > 0 && s.at < t.steps[len(t.steps)-1].at {
		l.mistake(n, "a step must not be earlier than the one before it")
	}
	t.steps = append(t.steps, s)
}

// moment reads how long after the start something is.
func (l *loader) moment(into *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		l.duration(into)(n)
		if *into > maxTestTime {
			l.mistake(n, "is %v, at most %v are allowed", *into, maxTestTime)
			*into = 0
		}
	}
}

func (l *loader) check(n *yaml.Node, t *testCase) {
	c := testCheck{line: n.Line}
	var alerts *yaml.Node // read last: the rule may be named after them
	l.fields(n, "an expectation", []key{
		{"at", true, l.moment(&c.at)},
		{"rule", false, l.text(&c.rule)},
		{"alerts", true, func(n *yaml.Node) { alerts = n }},
	})
	if alerts != nil {
		l.each(func(n *yaml.Node) {
			a := wantedAlert{State: "firing", Rule: c.rule}
			var value any
			if err := n.Decode(&value); err != nil {
				l.mistake(n, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
				return
			}
			if err := strictly(value, &a); err != nil {
				l.mistake(n, "%v; an alert has rule, state, pod, container, labels, annotations", err)
				return
			}
			c.alerts = append(c.alerts, a)
		})(alerts)
	}
	t.checks = append(t.checks, c)
}

// strictly decodes a value of YAML as JSON, without unknown fields.
func strictly(value any, into any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// merge puts one value over another: maps key by key, a null deletes, all else replaces.
func merge(under, over any) any {
	top, ok := over.(map[string]any)
	if !ok {
		return over
	}
	merged := map[string]any{}
	if bottom, ok := under.(map[string]any); ok {
		for k, v := range bottom {
			merged[k] = v
		}
	}
	for k, v := range top {
		if v == nil {
			delete(merged, k)
		} else {
			merged[k] = merge(merged[k], v)
		}
	}
	return merged
}

// instants replaces each text such as +5m or -30s by the time so long after or before the start.
func instants(value any, start time.Time) any {
	switch v := value.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(v))
		for k, item := range v {
			replaced[k] = instants(item, start)
		}
		return replaced
	case []any:
		replaced := make([]any, len(v))
		for i, item := range v {
			replaced[i] = instants(item, start)
		}
		return replaced
	case string:
		if len(v) > 1 && (v[0] == '+' || v[0] == '-') {
			if d, err := ParseDuration(v[1:]); err == nil {
				if v[0] == '-' {
					d = -d
				}
				return start.Add(d).Format(time.RFC3339Nano)
			}
		}
	}
	return value
}
