package engine

import (
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/text"
)

//go:embed alert-rules.md.tmpl
var documentTemplate string

// WriteDocument writes the page about rules in Markdown: files, vocabulary, functions, tests and the
// starter pack. text/template would do, but a program that links it keeps every exported method: statusd would have 67 MB instead of 48.
func WriteDocument(w io.Writer) error {
	known := expr.Describe()
	var variables, functions, types, pack strings.Builder
	for _, v := range known.Variables {
		fmt.Fprintf(&variables, "- `%s` (%s, in %s): %s\n", v.Name, v.Type, v.Scopes, v.Doc)
	}
	for _, f := range known.Functions {
		fmt.Fprintf(&functions, "- `%s` of %s: %s\n", f.Signature, f.On, f.Doc)
	}
	for _, t := range known.Types {
		fmt.Fprintf(&types, "### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", t.Name, t.Doc)
		for _, f := range t.Fields {
			fmt.Fprintf(&types, "| `%s` | %s | %s |\n", f.Name, f.Type, f.Doc)
		}
		types.WriteByte('\n')
	}
	for _, r := range ruleset.Pack().Rules() {
		source := strings.ReplaceAll(strings.Join(strings.Fields(r.Expr), " "), "|", "\\|")
		fmt.Fprintf(&pack, "| %s | %s | %s | %s | `%s` |\n", r.Name, r.Scope, r.Severity, rulefile.ShortDuration(r.For), source)
	}
	_, err := strings.NewReplacer(
		"{{ .MaxFile }}", strconv.Itoa(rulefile.MaxBytes), "{{ .MaxExpression }}", strconv.Itoa(expr.MaxExpression), "{{ .MaxCost }}", strconv.Itoa(expr.MaxCost),
		"{{ .Relook }}", text.Span(expr.Relook), "{{ .NodeEvery }}", text.Span(nodeEvery), "{{ .RestFor }}", text.Span(restFor),
		"{{ .Variables }}\n", variables.String(), "{{ .Functions }}\n", functions.String(), "{{ .Types }}\n", types.String(), "{{ .Pack }}\n", pack.String(),
	).WriteString(w, documentTemplate)
	return err
}
