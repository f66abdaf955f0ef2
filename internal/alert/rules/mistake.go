package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	lines "github.com/statusd/statusd/internal/text"
)

// Mistake is something wrong with a file of rules, and where.
type Mistake struct {
	File         string
	Line, Column int
	Message      string
}

func (m Mistake) Error() string {
	if m.Line == 0 {
		return m.File + ": " + m.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Message)
}

// Mistakes are everything that is wrong, in the order of the files.
type Mistakes []Mistake

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].Error()
	}
	return strings.Join(lines, "\n")
}

func (m Mistakes) sort() {
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// improve makes the message of a check one that says what is known instead.
func (c *compiler) improve(scope Scope, message string) string {
	message = plainTypes.Replace(message)
	if name, ok := between(message, "undefined field '", "'"); ok {
		for _, missing := range c.provider.missing {
			if missing.name == name {
				names := vocabulary[missing.typ].names()
				return fmt.Sprintf("%s has no field %s%s; it has %s", missing.typ, name, meant(name, names), strings.Join(names, ", "))
			}
		}
	}
	if name, ok := between(message, "undeclared reference to '", "'"); ok {
		names := namesIn(scope)
		return fmt.Sprintf("%s is not known in scope %s%s; known are %s", name, scope, meant(name, names), strings.Join(names, ", "))
	}
	if name, ok := between(message, "found no matching overload for '", "'"); ok {
		for _, f := range functions {
			if f.name == name {
				return fmt.Sprintf("%s; it is %s, of %s", message, f.signature, strings.Join(f.on, ", "))
			}
		}
	}
	return message
}

// subjectTypes are the types of the subjects of scopes.
var subjectTypes = map[Scope]string{ScopePod: "Pod", ScopeContainer: "Container", ScopeNode: "Node", ScopeKubelet: "Kubelet"}

// namesIn are the variables and functions of a scope.
func namesIn(scope Scope) []string {
	var names []string
	for _, v := range variables {
		if v.in(scope) {
			names = append(names, v.name)
		}
	}
	for _, f := range functions {
		if slices.Contains(f.on, subjectTypes[scope]) {
			names = append(names, f.name+"()")
		}
	}
	return append(names, "age()")
}

func between(text, begin, end string) (string, bool) {
	_, rest, ok := strings.Cut(text, begin)
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, end)
	return name, ok
}

// meant is a guess at what was meant, as a clause; empty if nothing is near.
func meant(name string, known []string) string {
	if best := lines.Nearest(name, known); best != "" {
		return " (did you mean " + best + "?)"
	}
	return ""
}

func typeNames(list []*cel.Type) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = plainTypes.Replace(t.String())
	}
	return strings.Join(names, ", ")
}

// plainTypes are the names of types as expressions write them.
var plainTypes = strings.NewReplacer("google.protobuf.Timestamp", "timestamp", "google.protobuf.Duration", "duration")
