package ruletest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
	"github.com/statusd/statusd/internal/text"
)

// Result is the result of one test of rules.
type Result struct {
	File string
	Line int
	Name string
	// Failures are the failed expectations, empty if the test passed.
	Failures []string
}

// Run runs the tests of a file. Paths of rules in the file are relative to it; a file without rules
// tests the starter pack.
func Run(file string) ([]Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return run(file, data, func(names []string) (*ruleset.Set, error) {
		paths := make([]string, len(names))
		for i, name := range names {
			if paths[i] = name; !filepath.IsAbs(name) {
				paths[i] = filepath.Join(filepath.Dir(file), name)
			}
		}
		return ruleset.Load(paths...)
	})
}

// RunFS is [Run] in a file system.
func RunFS(fsys fs.FS, file string) ([]Result, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return run(file, data, func(names []string) (*ruleset.Set, error) {
		paths := make([]string, len(names))
		for i, name := range names {
			paths[i] = path.Join(path.Dir(file), name)
		}
		return ruleset.LoadFS(fsys, paths...)
	})
}

func run(file string, data []byte, load func([]string) (*ruleset.Set, error)) ([]Result, error) {
	f, err := parseTests(file, data)
	if err != nil {
		return nil, err
	}
	set := ruleset.Pack
	if len(f.rules) > 0 {
		loaded, err := load(f.rules)
		if err != nil {
			return nil, err
		}
		set = func() *ruleset.Set { return loaded }
	}
	var results []Result
	for _, t := range f.tests {
		results = append(results, Result{File: file, Line: t.line, Name: t.name, Failures: t.run(file, set())})
	}
	return results, nil
}

// stage is a timeline over a scene.
type stage struct {
	scene    *scene.Scene
	timeline *engine.Timeline
	start    time.Time
}

func newStage(set *ruleset.Set, start time.Time) *stage {
	s := scene.New(start)
	options := engine.Options{Source: s, Audit: s, Kubelet: s.Kubelet, Set: set, Node: "node"}
	return &stage{scene: s, timeline: engine.NewTimeline(options, start, func(now time.Time) { s.Now = now }), start: start}
}

// take applies a step and evaluates the changed subjects.
func (s *stage) take(step scene.Step) error {
	return s.timeline.Learn(s.start.Add(step.At), func() (engine.News, error) {
		changed, err := s.scene.Take(step)
		return engine.News{Changed: changed, ClockStep: s.scene.ClockStep(), Guard: s.scene.Guard()}, err
	})
}

// run runs a test and returns the failed expectations.
func (t *testCase) run(file string, set *ruleset.Set) (failures []string) {
	if failures = t.unknown(file, set); len(failures) > 0 {
		return failures
	}
	s := newStage(set, t.start)
	checks := slices.Clone(t.checks)
	sort.SliceStable(checks, func(i, j int) bool { return checks[i].at < checks[j].at })
	for _, step := range t.steps {
		for len(checks) > 0 && checks[0].at < step.At {
			failures = append(failures, s.verify(file, checks[0])...)
			checks = checks[1:]
		}
		if err := s.take(step.Step); err != nil {
			return append(failures, fmt.Sprintf("%s:%d: %v", file, step.line, err))
		}
	}
	for _, c := range checks {
		failures = append(failures, s.verify(file, c)...)
	}
	for name, f := range s.timeline.Faults() {
		failures = append(failures, fmt.Sprintf("%s:%d: rule %s cannot be evaluated: %s", file, t.line, name, f))
	}
	return failures
}

// unknown names the rules that are expected to fire, or not to, and that there are not.
func (t *testCase) unknown(file string, set *ruleset.Set) (failures []string) {
	var known []string
	for _, r := range set.Rules() {
		known = append(known, r.Name)
	}
	for _, c := range t.checks {
		names := []string{c.rule}
		for _, a := range c.alerts {
			names = append(names, a.Rule)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if name != "" && !slices.Contains(known, name) {
				failures = append(failures, fmt.Sprintf("%s:%d: there is no rule %s%s", file, c.line, text.Cut(name, 64), text.DidYouMean(name, known)))
			}
		}
	}
	return failures
}

// verify compares the alerts at an instant with the expected ones.
func (s *stage) verify(file string, c testCheck) []string {
	if err := s.timeline.Advance(s.start.Add(c.at)); err != nil {
		return []string{fmt.Sprintf("%s:%d: %v", file, c.line, err)}
	}
	var got []alert.Alert
	pending := slices.ContainsFunc(c.alerts, func(w wantedAlert) bool { return w.State == string(alert.Pending) })
	for _, a := range s.timeline.Alerts() {
		if (c.rule == "" || c.rule == a.Rule) && (a.State == alert.Firing || pending) {
			got = append(got, a)
		}
	}
	missing, got := unpaired(c.alerts, got)
	if len(missing) == 0 && len(got) == 0 {
		return nil
	}
	return []string{showDifference(file, c, missing, got)}
}

// unpaired matches wanted alerts with alerts, as many as possible, and returns the rest of both. Maximum matching: a
// loose expectation must not consume the only alert that satisfies a strict one.
func unpaired(wanted []wantedAlert, got []alert.Alert) (missing []wantedAlert, extra []alert.Alert) {
	owner := make([]int, len(got)) // the number of the wanted alert that has it, from 1
	var pair func(i int, asked []bool) bool
	pair = func(i int, asked []bool) bool {
		for j := range got {
			if asked[j] || !wanted[i].matches(got[j]) {
				continue
			}
			asked[j] = true
			if owner[j] == 0 || pair(owner[j]-1, asked) {
				owner[j] = i + 1
				return true
			}
		}
		return false
	}
	for i := range wanted {
		if !pair(i, make([]bool, len(got))) {
			missing = append(missing, wanted[i])
		}
	}
	for j := range got {
		if owner[j] == 0 {
			extra = append(extra, got[j])
		}
	}
	return missing, extra
}

func (w wantedAlert) matches(a alert.Alert) bool {
	if w.Rule != a.Rule || w.State != string(a.State) || w.Container != "" && w.Container != a.Container {
		return false
	}
	if w.Pod != "" && w.Pod != a.Pod && w.Pod != a.Namespace+"/"+a.Pod {
		return false
	}
	return within(w.Labels, a.Labels) && within(w.Annotations, a.Annotations)
}

func within(part, whole map[string]string) bool {
	for k, v := range part {
		if whole[k] != v {
			return false
		}
	}
	return true
}

// showDifference shows missing and unexpected alerts as a diff. For an unexpected alert it prints the labels and
// annotations that the test asks for.
func showDifference(file string, c testCheck, missing []wantedAlert, extra []alert.Alert) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: at %v:", file, c.line, c.at)
	asked := map[string]bool{}
	for _, w := range missing {
		fmt.Fprintf(&b, "\n  - %s", alertLine(w.Rule, w.State, w.Pod, w.Container))
		for _, m := range []map[string]string{w.Labels, w.Annotations} {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				asked[k] = true
				fmt.Fprintf(&b, "\n  -   %s: %s", k, m[k])
			}
		}
	}
	for _, a := range extra {
		pod := a.Pod
		if a.Namespace != "" {
			pod = a.Namespace + "/" + a.Pod
		}
		fmt.Fprintf(&b, "\n  + %s", alertLine(a.Rule, string(a.State), pod, a.Container))
		for _, m := range []map[string]string{a.Labels, a.Annotations} {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				if asked[k] {
					fmt.Fprintf(&b, "\n  +   %s: %s", k, m[k])
				}
			}
		}
	}
	return b.String()
}

func alertLine(rule, state, pod, container string) string {
	line := rule + " " + state
	if pod != "" {
		line += " of " + pod
	}
	if container != "" {
		line += " container " + container
	}
	return line
}
