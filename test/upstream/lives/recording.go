package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// moment is a state and when it was first seen, counted from the first one.
type moment struct {
	after time.Duration
	state state
}

// recording is a pod's life. As text, a moment is one line that starts with its time,
// followed by its details, indented.
type recording []moment

const indent = "      "

func (r recording) String() string {
	var text strings.Builder
	for _, m := range r {
		fmt.Fprintf(&text, "%4.1f  %s\n", m.after.Seconds(), m.state.headline)
		for _, detail := range m.state.details {
			text.WriteString(indent + detail + "\n")
		}
	}
	return text.String()
}

func parseRecording(text string) (recording, error) {
	var r recording
	for number, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if detail, ok := strings.CutPrefix(line, indent); ok && len(r) > 0 {
			last := &r[len(r)-1].state
			last.details = append(last.details, detail)
			continue
		}
		after, headline, found := strings.Cut(strings.TrimLeft(line, " "), "  ")
		seconds, err := strconv.ParseFloat(after, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("line %d is neither a time and a state nor a detail: %q", number+1, line)
		}
		r = append(r, moment{after: time.Duration(seconds * float64(time.Second)), state: state{headline: headline}})
	}
	return r, nil
}

func readRecording(file string) (recording, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := parseRecording(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}
