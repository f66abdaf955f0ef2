package rulefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// Sort orders the mistakes by their places.
func (m Mistakes) Sort() {
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
