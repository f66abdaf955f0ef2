package rules

import (
	"context"
	"errors"
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
)

// TestResult is the result of one test of rules.
type TestResult struct {
	File string
	Line int
	Name string
	// Failures are what was not as expected, empty if all was.
	Failures []string
}

// RunTests runs the tests of a file. The rules that it names are relative to it; a file that names
// none is about the starter pack.
func RunTests(file string) ([]TestResult, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return runTests(file, data, func(names []string) (*Set, error) {
		paths := make([]string, len(names))
		for i, name := range names {
			if paths[i] = name; !filepath.IsAbs(name) {
				paths[i] = filepath.Join(filepath.Dir(file), name)
			}
		}
		return Load(paths...)
	})
}

// RunTestsFS is [RunTests] in a file system.
func RunTestsFS(fsys fs.FS, file string) ([]TestResult, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return runTests(file, data, func(names []string) (*Set, error) {
		paths := make([]string, len(names))
		for i, name := range names {
			paths[i] = path.Join(path.Dir(file), name)
		}
		return LoadFS(fsys, paths...)
	})
}

func runTests(file string, data []byte, load func([]string) (*Set, error)) ([]TestResult, error) {
	f, err := parseTests(file, data)
	if err != nil {
		return nil, err
	}
	set := Pack
	if len(f.rules) > 0 {
		loaded, err := load(f.rules)
		if err != nil {
			return nil, err
		}
		set = func() *Set { return loaded }
	}
	var results []TestResult
	for _, t := range f.tests {
		results = append(results, TestResult{File: file, Line: t.line, Name: t.name, Failures: t.run(file, set())})
	}
	return results, nil
}

// stage is a core over a scene, with a clock that a test turns.
type stage struct {
	scene *scene
	core  *core
	now   time.Time
}

func newStage(set *Set, start time.Time, outputs ...Output) *stage {
	s := newScene(start)
	options := &Options{Source: s, Audit: s, Kubelet: sceneGuard{s}.facts, Set: set, Node: "node", Outputs: outputs}
	return &stage{scene: s, core: newCore(options, start), now: start}
}

// maxLooks is how often one test may look at its subjects.
const maxLooks = 1_000_000

// advance lets time pass until an instant, with all that is due on the way.
func (s *stage) advance(until time.Time) error {
	for range maxLooks {
		at := earliest(s.core.schedule.next(), s.core.silenceEnds())
		if at.IsZero() || at.After(until) {
			s.now = until
			return nil
		}
		if at.After(s.now) {
			s.now = at
		}
		s.scene.now = s.now
		if ends := s.core.silenceEnds(); !ends.IsZero() && !s.now.Before(ends) {
			s.core.reconsider(s.now)
		}
		if uid, ok := s.core.due(s.now); ok {
			s.core.evaluate(context.Background(), uid, s.now)
		}
	}
	return errors.New("the test looks at its subjects too often")
}

// take makes a step known and evaluates what it changes.
func (s *stage) take(step testStep) error {
	// What changes at an instant is known before what is due then is looked at.
	at := s.scene.start.Add(step.at)
	if err := s.advance(at.Add(-1)); err != nil {
		return err
	}
	s.now, s.scene.step = at, 0
	changed, err := s.scene.take(step)
	if err == nil {
		err = s.scene.valid()
	}
	if err != nil {
		return err
	}
	if s.scene.guard != nil {
		s.core.source.Guard = sceneGuard{s.scene}
	}
	if s.scene.step != 0 {
		s.core.noteStep(s.scene.step, s.now) // the time of the test goes on
	}
	slices.Sort(changed)
	for _, uid := range slices.Compact(changed) {
		s.core.evaluate(context.Background(), uid, s.now)
	}
	return nil
}

// run plays a test and returns what was not as expected.
func (t *testCase) run(file string, set *Set) (failures []string) {
	if failures = t.unknown(file, set); len(failures) > 0 {
		return failures
	}
	s := newStage(set, t.start)
	checks := slices.Clone(t.checks)
	sort.SliceStable(checks, func(i, j int) bool { return checks[i].at < checks[j].at })
	for _, step := range t.steps {
		for len(checks) > 0 && checks[0].at < step.at {
			failures = append(failures, s.verify(file, checks[0])...)
			checks = checks[1:]
		}
		if err := s.take(step); err != nil {
			return append(failures, fmt.Sprintf("%s:%d: %v", file, step.node.Line, err))
		}
	}
	for _, c := range checks {
		failures = append(failures, s.verify(file, c)...)
	}
	for name, f := range s.core.faults {
		failures = append(failures, fmt.Sprintf("%s:%d: rule %s cannot be evaluated: %s", file, t.line, name, f.message))
	}
	return failures
}

// unknown names the rules that are expected to fire, or not to, and that there are not.
func (t *testCase) unknown(file string, set *Set) (failures []string) {
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
				failures = append(failures, fmt.Sprintf("%s:%d: there is no rule %s%s", file, c.line, bounded(name, 64), meant(name, known)))
			}
		}
	}
	return failures
}

// verify compares the alerts at an instant with what is expected.
func (s *stage) verify(file string, c testCheck) []string {
	if err := s.advance(s.scene.start.Add(c.at)); err != nil {
		return []string{fmt.Sprintf("%s:%d: %v", file, c.line, err)}
	}
	var got []alert.Alert
	pending := slices.ContainsFunc(c.alerts, func(w wantedAlert) bool { return w.State == string(alert.Pending) })
	for _, a := range s.core.sorted() {
		if (c.rule == "" || c.rule == a.Rule) && (a.State == alert.Firing || pending) && a.rule != ruleFails {
			got = append(got, a.Alert)
		}
	}
	missing, got := unpaired(c.alerts, got)
	if len(missing) == 0 && len(got) == 0 {
		return nil
	}
	return []string{showDifference(file, c, missing, got)}
}

// unpaired gives each wanted alert one of its own, as many as possible, and returns what is left on both sides. One that
// says little takes none from one that says more.
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

// showDifference shows what is missing and what is too much, as a diff. An alert that is there with other values is
// shown with those that were asked for.
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
