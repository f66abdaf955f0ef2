package daemon

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// A Setting is one field of a config: the one place that says what it is called in the
// file and as a flag, and what it is for. The default config file, the flags and their help are
// all made from the settings.
type Setting struct {
	Path  string // in the file, as in log.format
	Flag  string // empty if there is none: flags are for what differs from start to start
	Value any    // points into the config
	Doc   string
}

// Settings are those of a package that has a type of its own for them, so that it can list them without field names.
func Settings[S ~struct {
	Path, Flag string
	Value      any
	Doc        string
}](list []S) []Setting {
	all := make([]Setting, len(list))
	for i, s := range list {
		all[i] = Setting(s)
	}
	return all
}

// AddFlags defines a flag for each setting that has one. Its default is the config's
// value, and parsing it changes the config: bind a config that a file was read into, and
// flags override the file.
func AddFlags(settings []Setting, flags *pflag.FlagSet) {
	for _, s := range settings {
		if s.Flag == "" {
			continue
		}
		usage := strings.ReplaceAll(s.Doc, "\n", " ")
		switch value := s.Value.(type) {
		case *string:
			flags.StringVar(value, s.Flag, *value, usage)
		case *bool:
			flags.BoolVar(value, s.Flag, *value, usage)
		case *int:
			flags.IntVar(value, s.Flag, *value, usage)
		case *float64:
			flags.Float64Var(value, s.Flag, *value, usage)
		case *time.Duration:
			flags.DurationVar(value, s.Flag, *value, usage)
		case *[]string:
			flags.StringSliceVar(value, s.Flag, *value, usage)
		default:
			panic(fmt.Sprintf("daemon: setting %s of type %T cannot be a flag", s.Path, s.Value))
		}
	}
}

// WriteConfig writes a config file with the values of the settings, in which each field says what it
// is for. The heading is its first line.
func WriteConfig(w io.Writer, heading string, settings []Setting) error {
	var out strings.Builder
	out.WriteString("# " + heading + "\n")
	section := ""
	for _, s := range settings {
		name, indent := s.Path, ""
		if parent, child, nested := strings.Cut(s.Path, "."); nested {
			if parent != section {
				fmt.Fprintf(&out, "\n%s:\n", parent)
			}
			section, name, indent = parent, child, "  "
		} else if s.Doc != "" {
			out.WriteString("\n")
		}
		value, err := onOneLine(s.Value)
		if err != nil {
			return fmt.Errorf("config: write %s: %w", s.Path, err)
		}
		if s.Doc != "" {
			for line := range strings.SplitSeq(s.Doc, "\n") {
				fmt.Fprintf(&out, "%s# %s\n", indent, line)
			}
		}
		if s.Flag != "" {
			fmt.Fprintf(&out, "%s# Flag: --%s\n", indent, s.Flag)
		}
		fmt.Fprintf(&out, "%s%s: %s", indent, name, value)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// onOneLine is a value of the config as YAML, lists and maps as [] and {}.
func onOneLine(value any) ([]byte, error) {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return nil, err
	}
	node.Style |= yaml.FlowStyle
	return yaml.Marshal(&node)
}
