package rulefile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// document is a file with the lines as they are on disk, so that a mistake inside a scalar has the line and column
// that an editor shows.
type document struct {
	file  string
	lines []string
}

func newDocument(file string, data []byte) *document {
	return &document{file: file, lines: linesOf(data)}
}

func linesOf(data []byte) []string { return strings.Split(lineBreaks.Replace(string(data)), "\n") }

// CountLines returns how many lines a file has, as YAML counts them.
func CountLines(data []byte) int { return len(linesOf(data)) }

// lineBreaks are what YAML takes for the end of a line.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// unreadable is the place of the first byte that YAML does not allow: no UTF-8, or a control character.
func unreadable(data []byte) (line, column int, found bool) {
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == '\n', r == '\r' && (len(data) == 1 || data[1] != '\n'):
			line, column = line+1, 0
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return line, column, true
		}
		column++
		data = data[size:]
	}
	return 0, 0, false
}

// at is the line and column, from 1, of the byte at an offset of the value of a scalar. Scalars fold
// and indent their lines, but all characters that are not white space stand on disk in their order.
func (d *document) at(n *yaml.Node, offset int) (line, column int) {
	if offset > len(n.Value) || n.Kind != yaml.ScalarNode || n.Style&yaml.DoubleQuotedStyle != 0 && d.escaped(n) {
		return n.Line, n.Column
	}
	line, column = n.Line, n.Column
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		line, column = n.Line+1, 1
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		column++
	}
	seen := 0 // how many characters stand before the wanted one
	for _, r := range n.Value[:offset] {
		if !unicode.IsSpace(r) {
			seen++
			if r == '\'' && n.Style&yaml.SingleQuotedStyle != 0 {
				seen++ // '' on disk
			}
		}
	}
	if foundLine, foundColumn, ok := d.nth(line, column, seen); ok {
		return foundLine, foundColumn
	}
	return n.Line, n.Column
}

// nth is the place of the n-th character that is not white space, from 0, at or after a place.
func (d *document) nth(line, column, n int) (int, int, bool) {
	for ; line <= len(d.lines); line++ {
		at := 1
		for rest := d.lines[line-1]; rest != ""; at++ {
			r, size := utf8.DecodeRuneInString(rest)
			rest = rest[size:]
			if at < column || unicode.IsSpace(r) {
				continue
			}
			if n == 0 {
				return line, at, true
			}
			n--
		}
		column = 1
	}
	return 0, 0, false
}

// escaped reports whether a double-quoted scalar has escapes, so that its value differs from the file's
// bytes.
func (d *document) escaped(n *yaml.Node) bool {
	return n.Line >= 1 && n.Line <= len(d.lines) && strings.Contains(d.lines[n.Line-1], `\`)
}
