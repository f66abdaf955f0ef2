package explain

import (
	"cmp"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/text"
)

// headlines say a state, as the end of "Pod default/web …".
var headlines = map[State]string{
	StateUnscheduled:  "is not scheduled",
	StateStarting:     "is starting",
	StateInitializing: "is initializing",
	StateReady:        "is Ready",
	StateNotReady:     "is not Ready",
	StateTerminating:  "is still Terminating",
	StateSucceeded:    "has succeeded",
	StateFailed:       "has failed",
	StateRejected:     "was rejected",
	StateEvicted:      "was evicted",
	StateUnknown:      "is in an unknown state",
}

// ends are the states that are events rather than durations.
var ends = map[State]bool{StateSucceeded: true, StateFailed: true, StateRejected: true, StateEvicted: true}

// Sentence returns the explanation as a sentence, with times of day in loc.
func (e Explanation) Sentence(loc *time.Location) string {
	var b strings.Builder
	b.WriteString(e.notTrue(loc))
	if len(e.NotTrue) > 0 {
		b.WriteString("Reported: ")
	}
	b.WriteString(e.headline(loc))
	for i, c := range e.Causes {
		because := ", because "
		if i > 0 {
			because = " Also because "
		}
		b.WriteString(because + causes([]Cause{c}) + ".")
		for _, root := range roots([]Cause{c}) {
			b.WriteString(e.outlook(root.Next, loc))
		}
	}
	if len(e.Causes) == 0 {
		b.WriteString(".")
	}
	for _, note := range e.Notes {
		b.WriteString(" Note: " + causes([]Cause{note}) + "." + e.outlook(note.Next, loc))
	}
	if e.Delivery != nil && !e.saysDelivery() {
		b.WriteString(" " + capitalize(e.Delivery.Text) + "." + e.outlook(e.Delivery.Next, loc))
	}
	return b.String()
}

// headline says the object, its state and since when.
func (e Explanation) headline(loc *time.Location) string {
	said := cmp.Or(e.Kind, "Pod") + " " + e.Namespace + "/" + e.Name + " " + headlines[e.State]
	if e.Since != nil {
		word := " since "
		if ends[e.State] {
			word = " at "
		}
		said += word + clock(e.now, *e.Since, loc)
	}
	return said
}

// saysDelivery reports whether the causes say already what keeps the API server from knowing more:
// of a pod that only waits for its deletion, that is the cause.
func (e Explanation) saysDelivery() bool {
	for _, root := range e.Roots() {
		if root.Code == CodeDeletionNotSent || root.Code == CodeCleaningUp {
			return e.Delivery.Code == CodeRetrying || e.Delivery.Code == CodeHeld
		}
	}
	return false
}

// causes joins causes and what is behind them.
func causes(list []Cause) string {
	clauses := make([]string, len(list))
	for i, c := range list {
		switch deeper := causes(c.Causes); {
		case deeper == "":
			clauses[i] = c.Text
		case c.Behind:
			clauses[i] = deeper + " · " + c.Text
		default:
			clauses[i] = c.Text + ": " + deeper
		}
	}
	return strings.Join(clauses, "; and ")
}

// Brief returns the cause in a few words, the deepest first and without the pod: "exit code 1: no such table · 4 restarts in 10
// min". It is empty for a ready pod.
func (e Explanation) Brief() string {
	if len(e.NotTrue) > 0 {
		return "not true: " + causes([]Cause{{Text: e.NotTrue[0].Text}})
	}
	return briefs(e.Causes, e.several)
}

// wrappers are causes that only say that what is behind them keeps the pod.
var wrappers = map[Code]bool{CodeContainersNotReady: true, CodeInitContainers: true, CodeNotStopped: true, CodeWaitingForInit: true, CodeContainerCreating: true, CodeSandboxNotReady: true}

func briefs(list []Cause, several bool) string {
	var parts []string
	for _, c := range list {
		if wrappers[c.Code] && len(c.Causes) > 0 {
			part := briefs(c.Causes, false)
			if several && c.Container != "" {
				part = c.Container + ": " + part
			}
			parts = append(parts, part)
			continue
		}
		parts = append(parts, causes([]Cause{c}))
	}
	return strings.Join(parts, "; ")
}

// outlook says what would change a cause.
func (e Explanation) outlook(next *Next, loc *time.Location) string {
	if next == nil {
		return ""
	}
	var said string
	if next.Wait != "" {
		said = " Next: " + next.Wait
		if next.At != nil {
			if next.At.After(e.now) {
				said += " in " + text.Span(next.At.Sub(e.now)) + " (" + clock(e.now, *next.At, loc) + ")"
			} else {
				said += " at any moment"
			}
		}
		said += "."
	}
	if next.Do != "" {
		said += " To do: " + next.Do
		if next.Command != "" {
			said += " (" + next.Command + ")"
		}
		said += "."
	}
	return said
}

// clock is a time of day, with the date if that is another one.
func clock(now, t time.Time, loc *time.Location) string {
	now, t = now.In(loc), t.In(loc)
	if now.Year() == t.Year() && now.YearDay() == t.YearDay() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func capitalize(said string) string {
	if said == "" {
		return said
	}
	return strings.ToUpper(said[:1]) + said[1:]
}
