package expr

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

// Template is a text with expressions in it: "{{ pod.name }} was restarted {{ pod.restarts }} times".
type Template struct {
	// Key is the name of the label or annotation.
	Key   string
	parts []part
}

// part is a text or, if expr is set, the value of an expression.
type part struct {
	text string
	expr *Expression
}

// maxTemplate is how long a template may be.
const maxTemplate = 8192

// templateTypes are what an expression in a template may be.
var templateTypes = []*cel.Type{cel.StringType, cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DurationType, cel.TimestampType}

// CompileTemplate makes a template of a text. Faults have the index of their byte in the text.
func (c *Compiler) CompileTemplate(scope Scope, key, source string, mistaken func(offset int, message string)) Template {
	t := Template{Key: key}
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
		expr, faults := c.Compile(scope, inner, templateTypes...)
		for _, f := range faults {
			mistaken(offset+OffsetOf(inner, f.Line, f.Column), f.Message)
		}
		t.parts = append(t.parts, part{expr: expr})
		offset += len(inner) + len("}}")
		rest = next
	}
}

// OffsetOf is the index of the byte at a line and column (in characters) of a text.
func OffsetOf(source string, line, column int) int {
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

// Fill returns the text with its values. An unknown value is a dash; long values are cut.
func (t *Template) Fill(ctx context.Context, m *Moment, limit int) (string, error) {
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
			return "", fmt.Errorf("%s: %w", t.Key, err)
		}
		if b.Len() > limit {
			break
		}
	}
	return lines.Cut(strings.TrimSpace(b.String()), limit), nil
}

func show(v ref.Val) string {
	switch v := v.(type) {
	case types.String:
		return string(v)
	case types.Double:
		return strconv.FormatFloat(float64(v), 'g', 4, 64)
	case types.Duration:
		return lines.Took(v.Duration)
	case types.Timestamp:
		return v.Time.UTC().Format(time.RFC3339)
	default:
		return fmt.Sprint(v.Value())
	}
}
