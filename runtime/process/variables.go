package process

import "strings"

// variables are an environment in the making: in order, the last value of a name wins.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) lookup(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

func (v *variables) list() []string {
	list := make([]string, len(v.names))
	for i, name := range v.names {
		list[i] = name + "=" + v.values[name]
	}
	return list
}

// expand replaces $(NAME) by its value. $$ stands for $, so that $$(NAME) stays $(NAME);
// what refers to nothing stays as it is.
func expand(text string, lookup func(string) (string, bool)) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		text = after
		switch {
		case strings.HasPrefix(text, "$"):
			out.WriteByte('$')
			text = text[1:]
		case strings.HasPrefix(text, "("):
			name, rest, closed := strings.Cut(text[1:], ")")
			value, known := lookup(name)
			if !closed || !known {
				out.WriteByte('$') // and the rest is ordinary text
				continue
			}
			out.WriteString(value)
			text = rest
		default:
			out.WriteByte('$')
		}
	}
}
