package campaign

import (
	"fmt"
	"os"
	"strings"
)

// Marks are the lines of a document between which a command writes a table.
type Marks struct{ Begin, End string }

// Table is what a document has between its marks.
func (m Marks) Table(document string) string {
	_, rest, _ := strings.Cut(document, m.Begin)
	table, _, _ := strings.Cut(rest, m.End)
	return table
}

// Replace puts a table into a document, between its marks.
func (m Marks) Replace(document, table string) (string, error) {
	before, rest, ok := strings.Cut(document, m.Begin)
	_, after, ended := strings.Cut(rest, m.End)
	if !ok || !ended {
		return "", fmt.Errorf("the document has no %s and %s", m.Begin, m.End)
	}
	return before + m.Begin + "\n" + table + m.End + after, nil
}

// Write puts a table into the document at a path.
func (m Marks) Write(path, table string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := m.Replace(string(document), table)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
