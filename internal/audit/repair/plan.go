package repair

import (
	"fmt"
	"slices"
	"time"

	"github.com/statusd/statusd/internal/audit"
)

// Defaults of a [Policy].
const (
	DefaultKubeletDead = 5 * time.Minute
	DefaultBudget      = 5
	DefaultPer         = time.Hour
	DefaultAgain       = 10 * time.Minute
)

// Policy has the allowed repairs. The zero value allows nothing.
type Policy struct {
	// Kinds are the kinds of differences that may be repaired; see [Kinds].
	Kinds []audit.Kind
	// KubeletDead is how long the kubelet must have been silent, with its lease stale, before a status is
	// written for it.
	KubeletDead time.Duration
	// Budget is the maximum number of repairs in the time Per, including failed ones.
	Budget int
	Per    time.Duration
	// Again is how long after an attempt the same thing may be tried again.
	Again time.Duration
	// DryRun: everything but the write itself is done.
	DryRun bool
}

// Kinds are the kinds of differences that can be repaired.
func Kinds() []audit.Kind {
	return []audit.Kind{audit.KubeletBehindRuntime, audit.UnreportedRestart, audit.RunningWithoutContainer, audit.ContainerWithoutPod}
}

// Validate returns an error that names a kind that cannot be repaired.
func (p Policy) Validate() error {
	for _, k := range p.Kinds {
		if !slices.Contains(Kinds(), k) {
			return fmt.Errorf("repair: %q cannot be repaired; what can be is %v", k, Kinds())
		}
	}
	if p.KubeletDead < 0 || p.Budget < 0 || p.Per < 0 || p.Again < 0 {
		return fmt.Errorf("repair: durations and budget must not be negative")
	}
	return nil
}

func (p Policy) withDefaults() Policy {
	if p.KubeletDead == 0 {
		p.KubeletDead = DefaultKubeletDead
	}
	if p.Budget == 0 {
		p.Budget = DefaultBudget
	}
	if p.Per == 0 {
		p.Per = DefaultPer
	}
	if p.Again == 0 {
		p.Again = DefaultAgain
	}
	return p
}

// Step is one repair that may be tried.
type Step struct {
	Kind      audit.Kind
	Pod       audit.Ref
	Container string
	// Why is the message of the difference.
	Why    string
	DryRun bool
	// KubeletDead is copied from the policy.
	KubeletDead time.Duration
}

// Past is an attempt of a repair.
type Past struct {
	At   time.Time
	Kind audit.Kind
	Pod  audit.Ref
}

// Plan returns the repairs that may be tried now, in the order of the report: certain drift of an allowed
// kind, within the remaining budget. A status is repaired once per pod.
func Plan(r audit.Report, p Policy, past []Past, now time.Time) []Step {
	p = p.withDefaults()
	left := p.Budget
	for _, attempt := range past {
		if age := now.Sub(attempt.At); age < p.Per { // one from the future counts, after the clock was set back
			left--
		}
	}
	var steps []Step
	for _, d := range r.Differences {
		if left <= len(steps) {
			break
		}
		if !slices.Contains(p.Kinds, d.Kind) || !d.Drift || !d.Repair || !p.sure(r, d, now) || p.tried(past, d, now) {
			continue
		}
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Pod.UID == d.Pod.UID }) {
			continue
		}
		steps = append(steps, Step{Kind: d.Kind, Pod: d.Pod, Container: d.Container, Why: d.Message, DryRun: p.DryRun, KubeletDead: p.KubeletDead})
	}
	return steps
}

// sure reports whether the difference leaves no doubt. Without the word of the kubelet, it must have been
// dead for long enough.
func (p Policy) sure(r audit.Report, d audit.Difference, now time.Time) bool {
	if d.Kind == audit.ContainerWithoutPod && d.Certainty == audit.Certain {
		return true
	}
	return d.Certainty != audit.Possible && r.Sides[audit.SideAPI].Known() && r.Sides[audit.SideRuntime].Known() && p.dead(r, now)
}

// dead reports whether the kubelet has been silent for long enough and does not renew its lease either.
func (p Policy) dead(r audit.Report, now time.Time) bool {
	kubelet := r.Sides[audit.SideKubelet]
	stale := slices.ContainsFunc(r.Differences, func(d audit.Difference) bool {
		return d.Kind == audit.LeaseStale && d.Drift && now.Sub(d.Since) >= p.KubeletDead
	})
	return stale && silentFor(kubelet, now) >= p.KubeletDead
}

func silentFor(a audit.Answer, now time.Time) time.Duration {
	if a.Err == "" || a.Silent.IsZero() {
		return 0
	}
	return now.Sub(a.Silent)
}

func (p Policy) tried(past []Past, d audit.Difference, now time.Time) bool {
	return slices.ContainsFunc(past, func(a Past) bool {
		return a.Pod.UID == d.Pod.UID && now.Sub(a.At) < p.Again
	})
}
