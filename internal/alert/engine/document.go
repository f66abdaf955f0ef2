package engine

import (
	_ "embed"
	"io"
	"strings"
	"text/template"

	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

//go:embed alert-rules.md.tmpl
var documentTemplate string

// WriteDocument writes the page about rules in Markdown: files, vocabulary, functions, tests and the
// starter pack.
func WriteDocument(w io.Writer) error {
	page, err := textTemplate()
	if err != nil {
		return err
	}
	type packRow struct{ Name, Scope, Severity, For, Expr string }
	data := struct {
		expr.Reference
		MaxFile, MaxExpression, MaxCost int
		Relook, NodeEvery, RestFor      string
		Pack                            []packRow
	}{
		Reference: expr.Describe(), MaxFile: rulefile.MaxBytes, MaxExpression: expr.MaxExpression, MaxCost: expr.MaxCost,
		Relook: expr.Relook.String(), NodeEvery: nodeEvery.String(), RestFor: restFor.String(),
	}
	for _, r := range ruleset.Pack().Rules() {
		source := strings.ReplaceAll(strings.Join(strings.Fields(r.Expr), " "), "|", "\\|")
		data.Pack = append(data.Pack, packRow{r.Name, string(r.Scope), r.Severity, rulefile.ShortDuration(r.For), source})
	}
	return page.Execute(w, data)
}

func textTemplate() (*template.Template, error) {
	return template.New("alert-rules.md").Parse(documentTemplate)
}
