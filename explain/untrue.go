package explain

import (
	"strings"
	"time"
)

// Untruth is an error in the pod's status in the API, as found by an audit.
type Untruth struct {
	// Kind is a CamelCase word that becomes the code of the cause.
	Kind string
	// Container is the name of the container, empty for the pod.
	Container string
	// Text describes the error, as a clause or a sentence.
	Text string
	// Since is when the status became wrong, if known.
	Since time.Time
	// Certainty is "certain", "likely" or "possible"; empty is certain.
	Certainty string
	Evidence  []Statement
	// Do is what to do about the error, as an imperative.
	Do string
}

// Statement is the evidence of one source.
type Statement struct {
	By   string // as in "the runtime"
	At   time.Time
	Text string
}

// CodeEvidence is a cause that is the statement of one source: Since is the time of the statement.
const CodeEvidence Code = "Evidence"

// untruths are the causes of what is not true; the evidence is behind each.
func untruths(f Facts) []Cause {
	var list []Cause
	for _, u := range f.Untrue {
		c := Cause{Code: Code(u.Kind), Container: u.Container, Since: known(u.Since), Text: clause(u.Text) + hedges[u.Certainty], Next: do(clause(u.Do))}
		if c.Since != nil && c.Since.After(f.Now) {
			c.Since = nil // another clock
		}
		if u.Do == "" {
			c.Next = do("compare what each side says of the pod")
		}
		for _, s := range u.Evidence {
			c.Causes = append(c.Causes, Cause{Code: CodeEvidence, Since: known(s.At), Text: s.By + ": " + clause(s.Text)})
		}
		list = append(list, c)
	}
	return list
}

// hedges say how certain something is.
var hedges = map[string]string{"likely": ", which is likely but not certain", "possible": ", which is one of several explanations"}

// clause is one line without a full stop.
func clause(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "), ".")
}

// notTrue says what is not true, each with since when, the evidence and what to do.
func (e Explanation) notTrue(loc *time.Location) string {
	var b strings.Builder
	for i, c := range e.NotTrue {
		if i == 0 {
			b.WriteString("What the API says of pod " + e.Namespace + "/" + e.Name + " is not true")
		} else {
			b.WriteString("Also")
		}
		if c.Since != nil {
			b.WriteString(" since " + clock(e.now, *c.Since, loc))
		}
		b.WriteString(": " + c.Text + ".")
		for i, s := range c.Causes {
			word := " Evidence: "
			if i > 0 {
				word = " "
			}
			b.WriteString(word + s.Text)
			if s.Since != nil {
				b.WriteString(" (" + clock(e.now, *s.Since, loc) + ")")
			}
			if i < len(c.Causes)-1 {
				b.WriteString(";")
			} else {
				b.WriteString(".")
			}
		}
		b.WriteString(e.outlook(c.Next, loc) + " ")
	}
	return b.String()
}
