// Package text formats texts for people: lines of limited length, durations, numbers of bytes, suggestions for
// misspelled names.
package text

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Line makes one line of another program's output: white space becomes single spaces, bytes that are not UTF-8 are
// replaced, and control characters and marks that reorder or hide text are removed.
func Line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// Cut returns a text of at most limit bytes: the head, and an ellipsis if something is left out. It cuts between characters.
func Cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	return head(s, limit-len("…")) + "…"
}

// Ends returns a text of at most limit bytes: head and tail, with an ellipsis between them if something is left out. The head
// of a message names what failed, the tail why.
func Ends(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	first := head(s, limit/3)
	if i := strings.LastIndexByte(first, ' '); i > limit/6 {
		first = first[:i]
	}
	start := len(s) - (limit - len(first) - len(" … "))
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	last := s[start:]
	if i := strings.IndexByte(last, ' '); i >= 0 && i < limit/6 {
		last = last[i+1:]
	}
	return first + " … " + last
}

func head(s string, end int) string {
	end = max(end, 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Span says how long, in at most two units: "38 s", "2 min 5 s", "3 h 2 min", "4 d".
func Span(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	days, hours := int(d/(24*time.Hour)), int(d/time.Hour)%24
	minutes, seconds := int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case days > 0:
		return two(days, "d", hours, "h")
	case hours > 0:
		return two(hours, "h", minutes, "min")
	case minutes > 0:
		return two(minutes, "min", seconds, "s")
	}
	return fmt.Sprintf("%d s", seconds)
}

// Took says how long something took that may take less than a second: "400 µs", "12 ms", "1.3 s", and from ten seconds on as [Span] does.
func Took(d time.Duration) string {
	switch d = max(d, 0); {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d.Round(time.Millisecond) < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d.Round(100*time.Millisecond) < 10*time.Second:
		return fmt.Sprintf("%.2g s", d.Seconds())
	}
	return Span(d)
}

func two(a int, unit string, b int, smaller string) string {
	if b == 0 {
		return fmt.Sprintf("%d %s", a, unit)
	}
	return fmt.Sprintf("%d %s %d %s", a, unit, b, smaller)
}

// Bytes is a number of bytes with the unit that fits, at three digits: "80 MiB", "1.5 GiB". The page writes the same (internal/web/page/quantity.js).
func Bytes(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value >= 100 {
		return fmt.Sprintf("%.0f %ciB", value, units[unit])
	}
	return fmt.Sprintf("%.3g %ciB", value, units[unit])
}

// Nearest returns the known name that is nearest to a name, empty if none is near.
func Nearest(name string, known []string) string {
	best, least := "", min(max(1, len(name)/2), 3)+1
	if len(name) < 2 {
		return ""
	}
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(strings.TrimSuffix(k, "()"))); d < least {
			best, least = k, d
		}
	}
	return best
}

// DidYouMean returns a suggestion for a name, as a clause in parentheses; empty if no known name is near.
func DidYouMean(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return " (did you mean " + best + "?)"
	}
	return ""
}

// distance is how many characters must be changed, added or removed to make b of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
