package scenes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
)

// Lie is a false report about the node, or a fault of it, that lasts for a while. A table shows the reports of the audit and the guard about
// it; no test depends on their timing.
type Lie struct {
	Name, What string
	// Lasts is how long it goes on unless it is seen sooner.
	Lasts time.Duration
	// Expect is the kind of drift that must be seen; empty: none may be. Silent is the side that must not answer.
	Expect audit.Kind
	Silent audit.Side
	// Spared: a restart of the kubelet would do harm. Then the lie lasts for all of Lasts, and the guard must not want a restart.
	Spared bool
	// Halts: the kubelet does not work meanwhile, and a restart is right.
	Halts bool
	// Why is why nothing is expected.
	Why string

	Prepare, Break, Again, Mend func(context.Context, *Stage) error
}

// Telling is the record of a lie.
type Telling struct {
	Lie Lie
	// Seen is the first drift, or the silent side, and After how long that took; nil: nothing was seen.
	Seen   *audit.Difference
	Silent string
	After  time.Duration
	// Health and Reasons are the guard's last verdict, Would the restarts that it would have made.
	Health  guard.Health
	Reasons []string
	Would   int
	Wrong   string
}

// guardSettings are the settings of a guard that restarts nothing and only reports restarts that it
// would have made.
func (s *Stage) guardSettings() string {
	return fmt.Sprintf("guard: {enabled: true, unit: \"\", runtimeUnit: \"\", healthzURL: \"http://127.0.0.1:%d/healthz\"}\n", s.Node.Kubelet.HealthzPort)
}

// Tell plays a lie with an observer and a guard that restarts nothing.
func (s *Stage) Tell(ctx context.Context, lie Lie) (Telling, error) {
	all, err := s.TellAll(ctx, lie)
	return all[0], err
}

// TellAll plays lies at the same time. What is expected of one must not be expected of another.
func (s *Stage) TellAll(ctx context.Context, lies ...Lie) ([]Telling, error) {
	all := make([]Telling, len(lies))
	names := make([]string, len(lies))
	for i, lie := range lies {
		all[i].Lie, names[i] = lie, lie.Name
	}
	err := s.tell(ctx, all)
	if err != nil {
		err = fmt.Errorf("%q: %w", names, err)
	}
	return all, err
}

func (s *Stage) tell(ctx context.Context, all []Telling) error {
	if !strings.Contains(s.settings, "guard:") {
		s.settings += s.guardSettings()
	}
	if err := s.renew(ctx); err != nil {
		return err
	}
	each := func(act func(Lie) func(context.Context, *Stage) error) error {
		for _, t := range all {
			if do := act(t.Lie); do != nil {
				if err := do(ctx, s); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := each(func(lie Lie) func(context.Context, *Stage) error { return lie.Prepare }); err != nil {
		return err
	}
	if err := s.calm(ctx, s.Observer); err != nil {
		return err
	}
	begin := time.Now()
	if err := each(func(lie Lie) func(context.Context, *Stage) error { return lie.Break }); err != nil {
		return err
	}
	for slices.ContainsFunc(all, func(t Telling) bool { return t.goesOn(time.Since(begin)) }) {
		if err := each(func(lie Lie) func(context.Context, *Stage) error { return lie.Again }); err != nil {
			return err
		}
		if err := s.listen(ctx, all, begin); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
	if report, err := s.Observer.Client().Guard(ctx); err == nil {
		for i := range all {
			all[i].Health, all[i].Would = report.Health, len(report.Would)
			for _, reason := range report.Reasons {
				all[i].Reasons = append(all[i].Reasons, reason.Code)
			}
		}
	}
	for i := range all {
		all[i].judge()
	}
	if err := each(func(lie Lie) func(context.Context, *Stage) error { return lie.Mend }); err != nil {
		return err
	}
	if err := s.calm(ctx, s.Observer); err != nil {
		return err
	}
	return s.cleared(ctx)
}

// goesOn reports whether the lie goes on after this time.
func (t *Telling) goesOn(after time.Duration) bool {
	return after < t.Lie.Lasts && (t.Lie.Spared || t.Seen == nil && t.Silent == "")
}

// listen looks once at what the audit says.
func (s *Stage) listen(ctx context.Context, all []Telling, begin time.Time) error {
	report, err := s.Observer.Audit(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		t := &all[i]
		if side := t.Lie.Silent; side != "" && t.Silent == "" && !report.Sides[side].Known() {
			t.Silent, t.After = fmt.Sprintf("side %s is silent: %s", side, report.Sides[side].Err), time.Since(begin)
		}
		for _, d := range report.Differences {
			of := d.Kind == t.Lie.Expect
			if t.Lie.Expect == "" { // what no other lie explains
				of = !slices.ContainsFunc(all, func(other Telling) bool { return other.Lie.Expect == d.Kind })
			}
			if d.Drift && of && t.Seen == nil {
				usual := strings.NewReplacer(s.Node.Kubelet.Root(), "/var/lib/kubelet", s.Node.Containerd.Socket(), "/run/containerd/containerd.sock")
				d.Message, d.Do = usual.Replace(d.Message), usual.Replace(d.Do)
				t.Seen, t.After = &d, time.Since(begin)
			}
		}
	}
	return nil
}

// judge compares the observations with the expectations.
func (t *Telling) judge() {
	switch {
	case t.Lie.Expect == "" && t.Seen != nil:
		t.Wrong = "unexpected: " + t.Seen.Message
	case t.Lie.Expect != "" && t.Seen == nil:
		t.Wrong = "not seen: " + string(t.Lie.Expect)
	case t.Lie.Spared && t.Would > 0:
		t.Wrong = "the guard would have restarted the kubelet"
	case !t.Lie.Halts && t.Would > 0:
		t.Wrong = "the guard would have restarted a kubelet that works"
	case !t.Lie.Halts && t.Health == guard.Unhealthy:
		t.Wrong = "the guard says that a kubelet that works is unhealthy"
	case t.Lie.Silent != "" && t.Silent == "":
		t.Wrong = "side " + string(t.Lie.Silent) + " answered"
	}
}

// LieTable is the table of docs/evidence/lies.md: a row per lie from this run, or else its row in the earlier table.
func LieTable(all []Telling, before string) string {
	var b strings.Builder
	b.WriteString("| | lie or fault | what is done | seen | after | wording | what to do, as it is said | the guard |\n|---|---|---|---|---|---|---|---|\n")
	for i, lie := range Lies() {
		at := slices.IndexFunc(all, func(t Telling) bool { return t.Lie.Name == lie.Name })
		if at < 0 {
			b.WriteString(rowOf(before, lie.Name, i+1))
			continue
		}
		t := all[at]
		seen, after, words, do := "no", "-", t.Lie.Why, "-"
		switch {
		case t.Seen != nil:
			seen, after, words, do = fmt.Sprintf("%s, %s", t.Seen.Kind, t.Seen.Certainty), seconds(t.After)+" s", t.Seen.Message, t.Seen.Do
		case t.Silent != "":
			seen, after, words = "yes", seconds(t.After)+" s", t.Silent
		}
		if t.Wrong != "" {
			words += " **" + t.Wrong + "**"
		}
		verdict := string(t.Health)
		if len(t.Reasons) > 0 {
			verdict += " (" + strings.Join(slices.Compact(slices.Sorted(slices.Values(t.Reasons))), ", ") + ")"
		}
		if t.Would > 0 {
			verdict += "; would have restarted the kubelet"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s | %s | %s |\n", i+1, t.Lie.Name, t.Lie.What, seen, after, cell(words), cell(do), verdict)
	}
	return b.String()
}

// rowOf returns the row of a lie in a table, with its number, or "".
func rowOf(table, name string, number int) string {
	for row := range strings.Lines(table) {
		if _, rest, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|"); strings.HasPrefix(rest, " "+name+" |") {
			return fmt.Sprintf("| %d |%s", number, rest)
		}
	}
	return ""
}

// cell is a text that does not end its cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
