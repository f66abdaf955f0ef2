package explain

import (
	"strings"
	"time"
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

// Sentence says the explanation as a person would, with times of day in loc.
func (e Explanation) Sentence(loc *time.Location) string {
	var b strings.Builder
	b.WriteString(e.notTrue(loc))
	if len(e.NotTrue) > 0 {
		b.WriteString("Reported: ")
	}
	b.WriteString("Pod " + e.Namespace + "/" + e.Name + " " + headlines[e.State])
	if e.Since != nil {
		word := " since "
		if ends[e.State] {
			word = " at "
		}
		b.WriteString(word + clock(e.now, *e.Since, loc))
	}
	if len(e.Causes) > 0 {
		b.WriteString(", because " + causes(e.Causes))
	}
	b.WriteString(".")
	for _, root := range e.Roots() {
		b.WriteString(e.outlook(root.Next, loc))
	}
	for _, note := range e.Notes {
		b.WriteString(" Note: " + causes([]Cause{note}) + "." + e.outlook(note.Next, loc))
	}
	if e.Delivery != nil && !e.saysDelivery() {
		b.WriteString(" " + capitalize(e.Delivery.Text) + "." + e.outlook(e.Delivery.Next, loc))
	}
	return b.String()
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
		clauses[i] = c.Text
		if len(c.Causes) > 0 {
			clauses[i] += ": " + causes(c.Causes)
		}
	}
	return strings.Join(clauses, "; and ")
}

// outlook says what would change a cause.
func (e Explanation) outlook(next *Next, loc *time.Location) string {
	if next == nil {
		return ""
	}
	var text string
	if next.Wait != "" {
		text = " Next: " + next.Wait
		if next.At != nil {
			if next.At.After(e.now) {
				text += " in " + span(next.At.Sub(e.now)) + " (" + clock(e.now, *next.At, loc) + ")"
			} else {
				text += " at any moment"
			}
		}
		text += "."
	}
	if next.Do != "" {
		text += " To do: " + next.Do + "."
	}
	return text
}

// clock is a time of day, with the date if that is another one.
func clock(now, t time.Time, loc *time.Location) string {
	now, t = now.In(loc), t.In(loc)
	if now.Year() == t.Year() && now.YearDay() == t.YearDay() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func capitalize(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
