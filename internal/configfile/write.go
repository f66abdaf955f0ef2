package configfile

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Text returns the default file.
func (f *File[C]) Text() string { return f.options.Text }

// AddFlags defines a flag for each setting that has one. The default of a flag is the config's value, and
// parsing it changes the config: bind a config that a file was read into, and flags override the file.
func (f *File[C]) AddFlags(c *C, flags *pflag.FlagSet) {
	for _, s := range f.settings {
		if s.flag == "" {
			continue
		}
		usage := strings.ReplaceAll(s.doc, "\n", " ")
		switch value := f.value(c, s).(type) {
		case *string:
			flags.StringVar(value, s.flag, *value, usage)
		case *bool:
			flags.BoolVar(value, s.flag, *value, usage)
		case *int:
			flags.IntVar(value, s.flag, *value, usage)
		case *float64:
			flags.Float64Var(value, s.flag, *value, usage)
		case *time.Duration:
			flags.DurationVar(value, s.flag, *value, usage)
		case *[]string:
			flags.StringSliceVar(value, s.flag, *value, usage)
		default:
			panic(fmt.Sprintf("configfile: setting %s of type %T cannot be a flag", s.path, value))
		}
	}
}

func (f *File[C]) value(c *C, s setting) any { return pointer(reflect.ValueOf(c).Elem(), s.path) }

// Values returns the values of a config by the names of the file; a section is a nested map.
func (f *File[C]) Values(c *C) map[string]any {
	all := map[string]any{}
	for _, s := range f.settings {
		parent, child, nested := strings.Cut(s.path, ".")
		if !nested {
			all[s.path] = f.value(c, s)
			continue
		}
		section, ok := all[parent].(map[string]any)
		if !ok {
			section = map[string]any{}
			all[parent] = section
		}
		section[child] = f.value(c, s)
	}
	return all
}

// Write writes a config as a file that documents each field. The heading is its first line.
func (f *File[C]) Write(w io.Writer, heading string, c *C) error {
	var out strings.Builder
	out.WriteString("# " + heading + "\n")
	section := ""
	for _, s := range f.settings {
		name, indent := s.path, ""
		if parent, child, nested := strings.Cut(s.path, "."); nested {
			if parent != section {
				fmt.Fprintf(&out, "\n%s:\n", parent)
			}
			section, name, indent = parent, child, "  "
		} else if s.doc != "" {
			out.WriteString("\n")
		}
		value, err := flow(f.value(c, s))
		if err != nil {
			return fmt.Errorf("config: write %s: %w", s.path, err)
		}
		if s.doc != "" {
			fmt.Fprintf(&out, "%s# %s\n", indent, strings.ReplaceAll(s.doc, "\n", "\n"+indent+"# "))
		}
		if s.flag != "" {
			fmt.Fprintf(&out, "%s# Flag: --%s\n", indent, s.flag)
		}
		fmt.Fprintf(&out, "%s%s: %s\n", indent, name, value)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Marks of the place that a page has for the table of settings.
const begin, end = "<!-- settings -->\n", "<!-- end of settings -->"

// Page returns a page of Markdown with the table of settings at its place.
func (f *File[C]) Page(text string) (string, error) {
	before, rest, _ := strings.Cut(text, begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("the page has no lines %q and %q around the table of settings", strings.TrimSpace(begin), end)
	}
	return before + begin + f.Table() + end + after, nil
}

// Table returns the settings as a table of Markdown.
func (f *File[C]) Table() string {
	c := f.Default()
	var out strings.Builder
	out.WriteString("| field | flag | default | what it is for |\n|---|---|---|---|\n")
	for _, s := range f.settings {
		if s.path == "apiVersion" || s.path == "kind" {
			continue
		}
		flag := ""
		if s.flag != "" {
			flag = "`--" + s.flag + "`"
		}
		value, err := flow(f.value(&c, s))
		if err != nil {
			panic(fmt.Sprintf("configfile: %s: %v", s.path, err))
		}
		if value = strings.Trim(value, `"`); value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", s.path, flag, value, strings.ReplaceAll(s.doc, "\n", " "))
	}
	return out.String()
}

// flow is a value of the config as YAML on one line, lists and maps as [] and {}.
func flow(value any) (string, error) {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return "", err
	}
	node.Style |= yaml.FlowStyle
	text, err := yaml.Marshal(&node)
	return strings.TrimSuffix(string(text), "\n"), err
}
