package observer

import (
	"fmt"
	"io"
	"reflect"
	"strings"
)

// WriteTable writes the settings as a table of Markdown: docs/observe-settings.md.
func WriteTable(w io.Writer) error {
	c := Default()
	var out strings.Builder
	out.WriteString("| field | flag | default | what it is for |\n|---|---|---|---|\n")
	for _, s := range settings(&c) {
		if s.Path == "apiVersion" || s.Path == "kind" {
			continue
		}
		flag, value := "", fmt.Sprint(indirect(s.Value))
		if s.Flag != "" {
			flag = "`--" + s.Flag + "`"
		}
		if value != "" && value != "[]" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", s.Path, flag, value, strings.ReplaceAll(s.Doc, "\n", " "))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// indirect is what a setting points to.
func indirect(pointer any) any { return reflect.ValueOf(pointer).Elem().Interface() }
