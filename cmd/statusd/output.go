package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	humanize "k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// output is how an answer is printed.
type output struct {
	format  string
	formats []string
}

func (o *output) addFlag(cmd *cobra.Command, formats ...string) {
	o.formats = formats
	cmd.Flags().StringVarP(&o.format, "output", "o", formats[0], strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func (o *output) check() error {
	if !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("output %q is not known, want %s: %w", o.format, strings.Join(o.formats, ", "), errUsage)
	}
	return nil
}

// encoded prints a value as JSON or YAML, and reports whether the format is one of them.
func (o *output) encoded(out io.Writer, value any) (bool, error) {
	var text []byte
	var err error
	switch o.format {
	case "json":
		if text, err = json.MarshalIndent(value, "", "  "); err == nil {
			text = escaped(text)
		}
	case "yaml":
		if text, err = json.Marshal(value); err == nil {
			text, err = yaml.JSONToYAML(escaped(text))
		}
	default:
		return false, nil
	}
	if err == nil {
		_, err = fmt.Fprintln(out, strings.TrimSuffix(string(text), "\n"))
	}
	return true, err
}

// escaped is JSON in which each character that a terminal would act on is an escape. Below 32 the encoder has
// escaped them; the rest, which YAML does not allow either, it leaves as they are.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, acts) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if acts(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// acts reports whether a terminal would act on a character, except for the ends of lines.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// A table is printed with columns as wide as their widest cell.
type table struct {
	colors bool
	rows   [][]cell
}

// cell is a text and the SGR code of its color, empty for none.
type cell struct{ text, color string }

// The colors.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].text = plain(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) header(names ...string) {
	cells := make([]cell, len(names))
	for i, name := range names {
		cells[i] = cell{name, bold}
	}
	t.add(cells...)
}

func (t *table) print(out io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			b.WriteString(paint(c, t.colors))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+3))
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func paint(c cell, colors bool) string {
	if !colors || c.color == "" {
		return c.text
	}
	return "\x1b[" + c.color + "m" + c.text + "\x1b[0m"
}

// plain is a text on one line, without what a terminal would act on: names and messages of pods may
// be hostile. An empty one is a dash.
func plain(text string) string {
	if text == "" {
		return "-"
	}
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(harmless(text))
}

// harmless is a text without what a terminal would act on, except for the ends of lines.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// inColor reports whether colors are wanted: on a terminal, unless NO_COLOR is set (no-color.org).
func inColor(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// age is how long ago something was, as kubectl says it.
func age(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return humanize.HumanDuration(max(0, now.Sub(*t)))
}
