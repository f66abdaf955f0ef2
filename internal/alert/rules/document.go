package rules

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/google/cel-go/cel"
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
	type row struct{ Name, Type, Doc, Scopes, Signature, On string }
	type typeRow struct {
		Name, Doc string
		Fields    []row
	}
	type packRow struct{ Name, Scope, Severity, For, Expr string }
	data := struct {
		MaxFile, MaxExpression, MaxCost int
		Relook, NodeEvery, RestFor      string
		Variables, Functions            []row
		Types                           []typeRow
		Pack                            []packRow
	}{MaxFile: maxFile, MaxExpression: maxExpression, MaxCost: maxCost, Relook: relook.String(), NodeEvery: nodeEvery.String(), RestFor: restFor.String()}
	for _, v := range variables {
		data.Variables = append(data.Variables, row{Name: v.name, Type: typeNames([]*cel.Type{v.typ}), Doc: v.doc, Scopes: scopeNames(v.scopes)})
	}
	for _, f := range functions {
		data.Functions = append(data.Functions, row{Signature: f.signature, On: strings.Join(f.on, ", "), Doc: f.doc})
	}
	for _, t := range []*objectType{podType, containerType, probeType, deliveryType, differenceType, conditionType, changeType, nodeType, countsType, kubeletType, reasonType} {
		r := typeRow{Name: t.name, Doc: t.doc}
		for _, f := range t.fields {
			r.Fields = append(r.Fields, row{Name: f.name, Type: typeNames([]*cel.Type{f.typ}), Doc: f.doc})
		}
		data.Types = append(data.Types, r)
	}
	for _, r := range Pack().Rules() {
		expr := strings.ReplaceAll(strings.Join(strings.Fields(r.Expr), " "), "|", "\\|")
		data.Pack = append(data.Pack, packRow{r.Name, string(r.Scope), r.Severity, shortDuration(r.For), expr})
	}
	return page.Execute(w, data)
}

// shortDuration is a duration without its parts that are zero, as rules are written: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	var b strings.Builder
	for _, unit := range []string{"d", "h", "m", "s", "ms"} {
		if n := d / units[unit]; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit)
			d -= n * units[unit]
		}
	}
	return b.String()
}

func textTemplate() (*template.Template, error) {
	return template.New("alert-rules.md").Parse(documentTemplate)
}

func scopeNames(list []Scope) string {
	if slices.Equal(list, scopes) {
		return "all scopes"
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return "scope " + strings.Join(names, ", ")
}
