package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	lines "github.com/statusd/statusd/internal/text" // text is a value of CEL here
)

// improve replaces the message of a check by one with the known names.
func (c *Compiler) improve(scope Scope, message string) string {
	message = plainTypes.Replace(message)
	if name, ok := between(message, "undefined field '", "'"); ok {
		for _, missing := range c.provider.missing {
			if missing.name == name {
				names := vocabulary[missing.typ].names()
				return fmt.Sprintf("%s has no field %s%s; it has %s", missing.typ, name, lines.DidYouMean(name, names), strings.Join(names, ", "))
			}
		}
	}
	if name, ok := between(message, "undeclared reference to '", "'"); ok {
		names := namesIn(scope)
		return fmt.Sprintf("%s is not known in scope %s%s; known are %s", name, scope, lines.DidYouMean(name, names), strings.Join(names, ", "))
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

func typeNames(list []*cel.Type) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = plainTypes.Replace(t.String())
	}
	return strings.Join(names, ", ")
}

// plainTypes are the names of types as expressions write them.
var plainTypes = strings.NewReplacer("google.protobuf.Timestamp", "timestamp", "google.protobuf.Duration", "duration")
