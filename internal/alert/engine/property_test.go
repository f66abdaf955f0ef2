package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/alert/ruletest/scene"
)

// life is what a container is in from an instant on.
type life struct {
	at       time.Duration
	ready    bool
	crashing bool // waiting in CrashLoopBackOff, else running
	restarts int
}

// naive is a rule as a table over the whole life: no records, no instants that are noted, no heap.
type naive struct {
	cel string
	// holds reports whether it is true at an instant, of the lives until then.
	holds func(lives []life, at time.Duration) bool
}

func (l life) status() map[string]any {
	state := map[string]any{"running": map[string]any{"startedAt": "+0s"}}
	if l.crashing {
		state = map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}}
	}
	return map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
		"name": "app", "ready": l.ready && !l.crashing, "restartCount": l.restarts, "state": state, "containerID": fmt.Sprintf("x://%d", l.restarts)}}}
}

// until are the lives that have begun at an instant.
func until(lives []life, at time.Duration) []life {
	n := 0
	for n < len(lives) && lives[n].at <= at {
		n++
	}
	return lives[:n]
}

func seconds(t *rapid.T, low, high int, label string) time.Duration {
	return time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Second
}

func drawNaive(t *rapid.T, depth int) naive {
	kinds := 6
	if depth > 0 {
		kinds = 9
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return naive{`container.ready`, func(l []life, _ time.Duration) bool { return l[len(l)-1].ready && !l[len(l)-1].crashing }}
	case 1:
		d, n := seconds(t, 1, 30, "window"), rapid.IntRange(1, 4).Draw(t, "n")
		return naive{fmt.Sprintf(`restarts(duration("%v")) >= %d`, d, n), func(l []life, at time.Duration) bool {
			count := 0
			for i := range l {
				if i > 0 && l[i].at > at-d && l[i].restarts > l[i-1].restarts {
					count += l[i].restarts - l[i-1].restarts
				} else if i == 0 && l[i].at > at-d {
					count += l[i].restarts
				}
			}
			return count >= n
		}}
	case 2:
		d, n := seconds(t, 1, 30, "window"), rapid.IntRange(1, 3).Draw(t, "n")
		return naive{fmt.Sprintf(`flaps(duration("%v")) >= %d`, d, n), func(l []life, at time.Duration) bool {
			count := 0
			for i := 1; i < len(l); i++ {
				if l[i].at > at-d && l[i-1].ready && !l[i-1].crashing && (!l[i].ready || l[i].crashing) {
					count++
				}
			}
			return count >= n
		}}
	case 3:
		d := seconds(t, 0, 20, "limit")
		operator := rapid.SampledFrom([]string{">", ">=", "<", "<=", "==", "!="}).Draw(t, "operator")
		return naive{fmt.Sprintf(`durationIn("CrashLoopBackOff") %s duration("%v")`, operator, d), func(l []life, at time.Duration) bool {
			return compared(operator, crashingFor(l, at), d)
		}}
	case 4:
		d := seconds(t, 0, 20, "limit")
		return naive{fmt.Sprintf(`duration("%v") < durationIn("CrashLoopBackOff") + duration("1s")`, d), func(l []life, at time.Duration) bool {
			return compared("<", d, crashingFor(l, at)+time.Second)
		}}
	case 5:
		d := seconds(t, 1, 20, "window")
		return naive{fmt.Sprintf(`was("CrashLoopBackOff", duration("%v"))`, d), func(l []life, at time.Duration) bool {
			for i := range l {
				end := at + 1
				if i+1 < len(l) {
					end = l[i+1].at
				}
				if l[i].crashing && end > at-d {
					return true
				}
			}
			return false
		}}
	case 6:
		a := drawNaive(t, depth-1)
		return naive{"!(" + a.cel + ")", func(l []life, at time.Duration) bool { return !a.holds(l, at) }}
	case 7:
		a, b := drawNaive(t, depth-1), drawNaive(t, depth-1)
		return naive{"(" + a.cel + ") && (" + b.cel + ")", func(l []life, at time.Duration) bool { return a.holds(l, at) && b.holds(l, at) }}
	default:
		a, b := drawNaive(t, depth-1), drawNaive(t, depth-1)
		return naive{"(" + a.cel + ") || (" + b.cel + ")", func(l []life, at time.Duration) bool { return a.holds(l, at) || b.holds(l, at) }}
	}
}

// crashingFor is how long it has been waiting in a crash loop without a break.
func crashingFor(l []life, at time.Duration) time.Duration {
	since := time.Duration(-1)
	for i := len(l) - 1; i >= 0 && l[i].crashing; i-- {
		since = l[i].at
	}
	if since < 0 {
		return 0
	}
	return at - since
}

func compared(operator string, a, b time.Duration) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "==":
		return a == b
	}
	return a != b
}

// timeline is what a naive evaluator says: it looks at each second, right after it, and at nothing in between.
func (n naive) timeline(lives []life, pending, keep, end time.Duration) (story []string) {
	const never = time.Duration(-1)
	since, over, firing := never, never, false
	for second := time.Duration(0); second <= end; second += time.Second {
		for _, at := range []time.Duration{second, second + 1} {
			switch isTrue := n.holds(until(lives, at), at); {
			case firing && isTrue:
				over = never
			case firing:
				if over == never {
					over = at
				}
				if at >= over+keep {
					firing, since = false, never
					story = append(story, fmt.Sprintf("%v resolved", at))
				}
			case !isTrue:
				since = never
			default:
				if since == never {
					since = at
				}
				if at >= since+pending {
					firing, over = true, never
					story = append(story, fmt.Sprintf("%v firing", at))
				}
			}
		}
	}
	return story
}

// A rule fires and resolves at exactly the instants at which a naive evaluator says so that looks at the whole life all the
// time, although the engine looks only when something changes and at the instants that it has noted.
func TestRulesFireAsANaiveEvaluatorSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNaive(t, 2)
		pending, keep := seconds(t, 0, 8, "for"), seconds(t, 0, 8, "keepFiringFor")
		lives := []life{{ready: true}}
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			l := lives[len(lives)-1]
			l.at += seconds(t, 1, 12, "later")
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				l.ready = !l.ready
			case 1:
				l.crashing = !l.crashing
			case 2:
				l.restarts++
			default:
				l.restarts, l.crashing = l.restarts+rapid.IntRange(1, 3).Draw(t, "restarts"), !l.crashing
			}
			lives = append(lives, l)
		}
		end := lives[len(lives)-1].at + 70*time.Second
		want := n.timeline(lives, pending, keep, end)
		got := engineTimeline(t, n.cel, lives, pending, keep, end)
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Fatalf("%s for %v keepFiringFor %v\nof %+v\ngot  %v\nwant %v", n.cel, pending, keep, lives, got, want)
		}
	})
}

// engineTimeline is what the core says.
func engineTimeline(t interface{ Fatal(...any) }, expr string, lives []life, pending, keep, end time.Duration) (story []string) {
	set, err := ruleset.Parse("rule.yaml", fmt.Appendf(nil, `{"apiVersion": %q, "kind": "Rules", "groups": [{"name": "g", "rules": [{"name": "R", "scope": "container", "severity": "info", "for": "%ds", "keepFiringFor": "%ds", "expr": %q}]}]}`,
		rulefile.APIVersion, int(pending.Seconds()), int(keep.Seconds()), expr))
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(set, testStart, discard{})
	for _, l := range lives {
		step := scene.Step{At: l.at, What: map[string]any{"pod": map[string]any{"metadata": map[string]any{"name": "web"}, "status": l.status()}}}
		if err := s.take(step); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Advance(testStart.Add(end + 1)); err != nil {
		t.Fatal(err)
	}
	for _, delivery := range s.core.deliveries {
		story = append(story, fmt.Sprintf("%v %s", delivery.at.Sub(testStart), delivery.alert.State))
	}
	if s.core.faults["R"] != nil {
		t.Fatal(s.core.faults["R"].message)
	}
	return story
}

// discard is an output that has everything at once.
type discard struct{}

func (discard) Name() string { return "discard" }

func (discard) Notify(n Notification) { n.Done() }
