package source

import (
	"cmp"
	"fmt"
	"strings"
)

// A Problem is one thing wrong with a manifest, said so that a person can mend it.
type Problem struct {
	// File is the path of the manifest or of the directory.
	File string
	// Line is where in the file, counted from 1; 0 if the problem is the file itself.
	Line int
	// Field is the path of the field, as in spec.containers[0].image; may be empty.
	Field string
	// Reason says what is wrong and what would be right.
	Reason string
}

// Error is the problem in one line: file:line: field: reason.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Field != "" {
		b.WriteString(": " + p.Field)
	}
	b.WriteString(": " + p.Reason)
	return b.String()
}

func byPlace(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason))
}
