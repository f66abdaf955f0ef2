package ruletest

import (
	"fmt"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
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

// testStep is a step of the timeline, and the line on which it stands.
type testStep struct {
	scene.Step
	line int
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

// reader reads files of tests.
type reader struct{ rulefile.Reader }

// parseTests reads a file of tests.
func parseTests(file string, data []byte) (*testFile, error) {
	r := &reader{}
	f := &testFile{file: file}
	if len(data) > rulefile.MaxBytes {
		return nil, rulefile.Mistakes{{File: file, Message: fmt.Sprintf("the file has %d bytes, at most %d are allowed", len(data), rulefile.MaxBytes)}}
	}
	r.NotEmpty(KindTests+", tests", file, data, func(n *yaml.Node) {
		r.Fields(n, "the file", []rulefile.Key{
			rulefile.Required("apiVersion", r.Constant(rulefile.APIVersion)),
			rulefile.Required("kind", r.Constant(KindTests)),
			rulefile.Optional("rules", r.Each(func(n *yaml.Node) {
				var name string
				r.Text(&name)(n)
				f.rules = append(f.rules, name)
			})),
			rulefile.Required("tests", r.Each(func(n *yaml.Node) { r.test(n, f) })),
		})
	})
	if len(f.tests) > maxTests {
		r.Mistakes = append(r.Mistakes, rulefile.Mistake{File: file, Message: fmt.Sprintf("there are more than %d tests", maxTests)})
	}
	if len(r.Mistakes) > 0 {
		r.Mistakes.Sort()
		return nil, r.Mistakes
	}
	return f, nil
}

func (r *reader) test(n *yaml.Node, f *testFile) {
	t := &testCase{line: n.Line, start: testStart}
	r.Fields(n, "a test", []rulefile.Key{
		rulefile.Required("name", r.Text(&t.name)),
		rulefile.Optional("start", func(n *yaml.Node) {
			var err error
			if t.start, err = time.Parse(time.RFC3339, n.Value); err != nil {
				r.Mistake(n, "is %s, want a time such as 2026-01-01T00:00:00Z", rulefile.KindOf(n))
			}
		}),
		rulefile.Required("timeline", r.Each(func(n *yaml.Node) { r.testStep(n, t) })),
		rulefile.Required("expect", r.Each(func(n *yaml.Node) { r.check(n, t) })),
	})
	if len(t.steps)+len(t.checks) > maxSteps {
		r.Mistake(n, "a test has at most %d steps", maxSteps)
	}
	f.tests = append(f.tests, t)
}

func (r *reader) testStep(n *yaml.Node, t *testCase) {
	s := testStep{Step: scene.Step{What: map[string]any{}}, line: n.Line}
	take := func(name string) rulefile.Key {
		return rulefile.Optional(name, func(n *yaml.Node) {
			var value any
			if err := n.Decode(&value); err != nil {
				r.Mistake(n, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
				return
			}
			s.What[name] = value
		})
	}
	r.Fields(n, "a step", []rulefile.Key{
		rulefile.Required("at", r.moment(&s.At)),
		take("pod"), take("containers"), take("delivery"), take("differences"), take("records"), take("gone"),
		take("node"), take("kubelet"), take("clock"),
	})
	if len(t.steps) > 0 && s.At < t.steps[len(t.steps)-1].At {
		r.Mistake(n, "a step must not be earlier than the one before it")
	}
	t.steps = append(t.steps, s)
}

// moment reads how long after the start something is.
func (r *reader) moment(into *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		r.Duration(into)(n)
		if *into > maxTestTime {
			r.Mistake(n, "is %v, at most %v are allowed", *into, maxTestTime)
			*into = 0
		}
	}
}

func (r *reader) check(n *yaml.Node, t *testCase) {
	c := testCheck{line: n.Line}
	var alerts *yaml.Node // read last: the rule may be named after them
	r.Fields(n, "an expectation", []rulefile.Key{
		rulefile.Required("at", r.moment(&c.at)),
		rulefile.Optional("rule", r.Text(&c.rule)),
		rulefile.Required("alerts", func(n *yaml.Node) { alerts = n }),
	})
	if alerts != nil {
		r.Each(func(n *yaml.Node) {
			a := wantedAlert{State: "firing", Rule: c.rule}
			var value any
			if err := n.Decode(&value); err != nil {
				r.Mistake(n, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
				return
			}
			if err := scene.Strictly(value, &a); err != nil {
				r.Mistake(n, "%v; an alert has rule, state, pod, container, labels, annotations", err)
				return
			}
			c.alerts = append(c.alerts, a)
		})(alerts)
	}
	t.checks = append(t.checks, c)
}
