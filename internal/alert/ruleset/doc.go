// Package ruleset loads alert rules from files and from the starter pack.
//
//	set, err := ruleset.Load("/etc/statusd/rules") // all mistakes at once, with line and column
//	set = set.Over(ruleset.Pack())                 // a rule of the files replaces the pack's rule of the same name
//
// A rule is an expression in CEL with labels and annotations that are templates (package expr), and actions. `statusd rules doc` prints
// the format; docs/reference/alert-rules.md has it. Sets and rules are not changed once they are loaded, and may be read from any
// goroutine.
package ruleset
