package alert

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/statusd/statusd/internal/localhost"
)

// labelName is what Prometheus takes as the name of a label.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// ParseMatcher reads a matcher as it is written for amtool: name=value, name!=value, name=~expression or
// name!~expression. The value may stand in double quotes.
func ParseMatcher(text string) (Matcher, error) {
	i := strings.IndexAny(text, "=!")
	if i < 0 || i+1 == len(text) && text[i] == '!' {
		return Matcher{}, fmt.Errorf("matcher %s: want NAME=VALUE, NAME!=VALUE, NAME=~EXPRESSION or NAME!~EXPRESSION", localhost.Short(text))
	}
	m := Matcher{Name: text[:i], IsEqual: text[i] == '='}
	switch rest := text[i+1:]; {
	case strings.HasPrefix(rest, "~"):
		m.IsRegex, m.Value = true, rest[1:]
	case m.IsEqual:
		m.Value = rest
	case strings.HasPrefix(rest, "="):
		m.Value = rest[1:]
	default:
		return Matcher{}, fmt.Errorf("matcher %s: want != or !~ after the name", localhost.Short(text))
	}
	if strings.HasPrefix(m.Value, `"`) {
		value, err := strconv.Unquote(m.Value)
		if err != nil {
			return Matcher{}, fmt.Errorf("matcher %s: the value begins with a quote and is not a quoted string", localhost.Short(text))
		}
		m.Value = value
	}
	if err := m.check(); err != nil {
		return Matcher{}, fmt.Errorf("matcher %s: %w", localhost.Short(text), err)
	}
	return m, nil
}

func (m Matcher) check() error {
	if len(m.Name) > maxMatcher || len(m.Value) > maxMatcher {
		return fmt.Errorf("name or value has more than %d bytes", maxMatcher)
	}
	if !labelName.MatchString(m.Name) {
		return fmt.Errorf("name %s: want the name of a label: letters, digits and _, not beginning with a digit", localhost.Short(m.Name))
	}
	if m.IsRegex {
		// As it stands, since a parenthesis too many could close the group that compile puts around it.
		if _, err := regexp.Compile(m.Value); err != nil {
			return fmt.Errorf("value %s is not a regular expression: %.200s", localhost.Short(m.Value), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	return nil
}

// compile makes the regular expression of a matcher, which stands for the whole value.
func (m Matcher) compile() (*regexp.Regexp, error) { return regexp.Compile("^(?s:" + m.Value + ")$") }

// Matches reports whether a label with this value matches; an absent label has the empty value. An
// invalid regular expression matches nothing.
func (m Matcher) Matches(value string) bool {
	if !m.IsRegex {
		return (m.Value == value) == m.IsEqual
	}
	expression, err := m.compile()
	return err == nil && expression.MatchString(value) == m.IsEqual
}

// String is the matcher as it is written: name=value, name!=value, name=~value or name!~value.
func (m Matcher) String() string {
	operator := map[[2]bool]string{{false, true}: "=", {false, false}: "!=", {true, true}: "=~", {true, false}: "!~"}[[2]bool{m.IsRegex, m.IsEqual}]
	return m.Name + operator + m.Value
}
