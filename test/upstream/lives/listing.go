package main

import (
	"fmt"
	"slices"
	"strings"
)

// sideBySide lists both lives. kubectl's columns stand side by side, the kubelet's on the left,
// with a sign between: the state is the same (=), looks the same to kubectl (~), or is one side's
// only (< >). The details stand below, once if both agree, else after the sign of their side.
func sideBySide(pairs []pair) string {
	var text strings.Builder
	row(&text, "kubelet", " ", "statusd")
	row(&text, " sec  READY STATUS               RESTARTS", " ", " sec  READY STATUS               RESTARTS")
	for _, p := range pairs {
		row(&text, headline(p.kubelet), sign(p), headline(p.statusd))
		for _, detail := range details(p) {
			text.WriteString(indent + detail + "\n")
		}
	}
	return text.String()
}

func row(text *strings.Builder, left, sign, right string) {
	text.WriteString(strings.TrimRight(fmt.Sprintf("%-42s %s %s", left, sign, right), " ") + "\n")
}

func headline(m *moment) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%4.1f  %s", m.after.Seconds(), m.state.headline)
}

func sign(p pair) string {
	switch {
	case p.statusd == nil:
		return "<"
	case p.kubelet == nil:
		return ">"
	case p.same():
		return "="
	}
	return "~"
}

func details(p pair) []string {
	switch {
	case p.statusd == nil:
		return p.kubelet.state.details
	case p.kubelet == nil:
		return p.statusd.state.details
	}
	left, right := p.kubelet.state.details, p.statusd.state.details
	var all []string
	for _, detail := range left {
		if !slices.Contains(right, detail) {
			detail = "< " + detail
		}
		all = append(all, detail)
	}
	for _, detail := range right {
		if !slices.Contains(left, detail) {
			all = append(all, "> "+detail)
		}
	}
	return all
}
