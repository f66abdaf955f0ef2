package rules

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	lines "github.com/statusd/statusd/internal/text" // text is a value of CEL here
)

// template is a text with expressions in it: "{{ pod.name }} was restarted {{ pod.restarts }} times".
type filling struct {
	key   string
	parts []part
}

// part is a text or, if expr is set, the value of an expression.
type part struct {
	text string
	expr *expression
}

const (
	// maxTemplate is how long a template may be, maxLabel and maxAnnotation what it may become.
	maxTemplate   = 8192
	maxLabel      = 1024
	maxAnnotation = 4096
)

// templateTypes are what an expression in a template may be.
var templateTypes = []*cel.Type{cel.StringType, cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DurationType, cel.TimestampType}

// compileTemplate makes a template of a text. Faults have the index of their byte in the text.
func (c *compiler) compileTemplate(scope Scope, key, source string, mistaken func(offset int, message string)) filling {
	t := filling{key: key}
	if len(source) > maxTemplate {
		mistaken(0, fmt.Sprintf("the text has %d bytes, at most %d are allowed", len(source), maxTemplate))
		return t
	}
	rest, offset := source, 0
	for {
		before, after, found := strings.Cut(rest, "{{")
		if before != "" {
			t.parts = append(t.parts, part{text: before})
		}
		if !found {
			return t
		}
		offset += len(before) + len("{{")
		inner, next, closed := strings.Cut(after, "}}")
		if !closed {
			mistaken(offset-len("{{"), "{{ is not closed by }}")
			return t
		}
		expr, faults := c.compile(scope, inner, templateTypes...)
		for _, f := range faults {
			mistaken(offset+offsetOf(inner, f.line, f.column), f.message)
		}
		t.parts = append(t.parts, part{expr: expr})
		offset += len(inner) + len("}}")
		rest = next
	}
}

// offsetOf is the index of the byte at a line and column (in characters) of a text.
func offsetOf(source string, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		end := strings.IndexByte(source[offset:], '\n')
		if end < 0 {
			break
		}
		offset += end + 1
	}
	for ; column > 1 && offset < len(source) && source[offset] != '\n'; column-- {
		_, size := utf8.DecodeRuneInString(source[offset:])
		offset += size
	}
	return offset
}

// fill returns the text with its values. A value that is not known is a dash; what is too long is cut.
func (t *filling) fill(ctx context.Context, m *moment, limit int) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		value, err := p.expr.evaluate(ctx, m)
		switch {
		case err == nil:
			b.WriteString(show(value))
		case isUnknown(err):
			b.WriteString("-")
		default:
			return "", fmt.Errorf("%s: %w", t.key, err)
		}
		if b.Len() > limit {
			break
		}
	}
	return bounded(strings.TrimSpace(b.String()), limit), nil
}

func show(v ref.Val) string {
	switch v := v.(type) {
	case types.String:
		return string(v)
	case types.Double:
		return strconv.FormatFloat(float64(v), 'g', 4, 64)
	case types.Duration:
		return roughly(v.Duration).String()
	case types.Timestamp:
		return v.Time.UTC().Format(time.RFC3339)
	default:
		return fmt.Sprint(v.Value())
	}
}

// roughly is a duration without what a person does not read.
func roughly(d time.Duration) time.Duration {
	switch {
	case d.Abs() < time.Second:
		return d.Round(time.Millisecond)
	case d.Abs() < time.Minute:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// bounded cuts a text between two characters. What is no UTF-8 is replaced.
func bounded(s string, limit int) string { return lines.Cut(s, limit) }
