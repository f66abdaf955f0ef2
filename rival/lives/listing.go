package main

import (
	"fmt"
	"strings"
)

// column is how wide each side of a listing is.
const column = 76

// sideBySide lists both lives, the kubelet's on the left. The sign between them says
// whether the state is the same (=), differs in the details marked ~, or is one side's
// only (< >).
func sideBySide(pairs []pair) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-*s   %s\n", column, "kubelet", "statusd")
	line(&text, " sec  READY STATUS               RESTARTS", " ", " sec  READY STATUS               RESTARTS")
	for _, p := range pairs {
		left, right := lines(p.kubelet), lines(p.statusd)
		for i := range max(len(left), len(right)) {
			line(&text, at(left, i), sign(p, i), at(right, i))
		}
	}
	return text.String()
}

// sign stands between two lines of a pair: at its first one, and where details differ.
func sign(p pair, i int) string {
	switch {
	case i > 0:
		return "|"
	case p.statusd == nil:
		return "<"
	case p.kubelet == nil:
		return ">"
	case p.same():
		return "="
	}
	return "~"
}

func line(text *strings.Builder, left, sign, right string) {
	text.WriteString(strings.TrimRight(fmt.Sprintf("%-*s %s %s", column, left, sign, right), " ") + "\n")
}

// lines are those of the moment's text, cut to the width of a column.
func lines(m *moment) []string {
	if m == nil {
		return nil
	}
	var all []string
	for l := range strings.Lines(recording{*m}.String()) {
		all = append(all, wrap(strings.TrimRight(l, "\n"))...)
	}
	return all
}

// wrap breaks a line at spaces; what follows is indented further.
func wrap(line string) []string {
	var all []string
	for len(line) > column {
		cut := strings.LastIndex(line[:column+1], " ")
		if strings.TrimSpace(line[:max(cut, 0)]) == "" { // one long word
			break
		}
		all = append(all, strings.TrimRight(line[:cut], " "))
		line = indent + "    " + strings.TrimLeft(line[cut:], " ")
	}
	return append(all, line)
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
