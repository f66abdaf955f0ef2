package manifest

import (
	"cmp"
	"fmt"
	"strings"
)

// A Problem is one error in a manifest, with its place and a correct value.
type Problem struct {
	// File is the path of the manifest or of the directory.
	File string
	// Line is where in the file, counted from 1; 0 if the problem is the file itself.
	Line int
	// Field is the path of the field, as in spec.containers[0].image; may be empty.
	Field string
	// Reason describes the problem and a correct value.
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

// Compare orders problems by file, line and field, for [slices.SortFunc].
func (p Problem) Compare(q Problem) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Field, q.Field), cmp.Compare(p.Reason, q.Reason))
}
