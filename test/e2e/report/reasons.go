package report

import (
	"fmt"
	"strings"
)

// Reasons explain failed specs per agent: a missing feature of the machine or of the run's
// namespaces.
type Reasons []Reason

// Reason explains the failures of some specs.
type Reason struct {
	Text string
	// Specs are parts of their names.
	Specs []string
}

// ParseReasons reads a text with one reason per line, followed by indented lines with parts of the names of the reason's
// specs. Empty lines and lines that begin with # are ignored.
func ParseReasons(text string) (Reasons, error) {
	var reasons Reasons
	number := 0
	for l := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(l)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case l[0] != ' ' && l[0] != '\t':
			reasons = append(reasons, Reason{Text: trimmed})
		case len(reasons) == 0:
			return nil, fmt.Errorf("reasons, line %d: a spec without a reason above it: %s", number, trimmed)
		default:
			last := &reasons[len(reasons)-1]
			last.Specs = append(last.Specs, trimmed)
		}
	}
	for _, r := range reasons {
		if len(r.Specs) == 0 {
			return nil, fmt.Errorf("reasons: no spec below %q", r.Text)
		}
	}
	return reasons, nil
}

// Of returns the reason why the spec of that name fails, or "".
func (r Reasons) Of(name string) string {
	for _, reason := range r {
		for _, part := range reason.Specs {
			if strings.Contains(name, part) {
				return reason.Text
			}
		}
	}
	return ""
}

// Unexplained are the specs that failed without a reason.
func (r Reasons) Unexplained(run *Run) []Spec {
	var found []Spec
	for _, spec := range run.Specs {
		if spec.State == Failed && r.Of(spec.Name) == "" {
			found = append(found, spec)
		}
	}
	return found
}
