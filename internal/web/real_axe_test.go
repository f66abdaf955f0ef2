//go:build real

package web_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const axe = "../../build/axe-core-4.14.0/axe.min.js"

// violation is what axe says of a rule that is broken.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target         []any
		FailureSummary string
	}
}

type axeResult struct {
	Violations []violation
	Passed     []string
}

func TestThePageHasNoBarriers(t *testing.T) {
	script, err := os.ReadFile(axe)
	if err != nil {
		t.Fatalf("axe-core is not there; internal/web/fetch-axe fetches it, and make test calls that: %v", err)
	}
	f := startObserved(t)
	views := []string{"#/", "#/pods/shop/web-0", "#/node", "#/pods/shop/orders-5c44", "#/pods/shop/cart-7d9f"}
	for _, look := range []struct {
		theme string
		width int64
		views []string
	}{{"light", 1280, views}, {"dark", 1280, views[:4]}, {"light", 360, views[:4]}} {
		page := openTab(t, f.page(""), scheme(look.theme))
		page.size(look.width, 800)
		page.live()
		page.do(string(script))
		for _, hash := range look.views {
			page.goTo(hash)
			page.do(`document.querySelector('#pod-view:not([hidden]) details')?.setAttribute('open', '')`)
			page.lookForBarriers(fmt.Sprintf("%s, %d pixels wide, %s", look.theme, look.width, hash))
		}
	}
	page := openTab(t, f.page(""))
	page.live()
	page.do(string(script))
	f.stop()
	page.contains("#lost:not([hidden])", "Connection lost")
	page.lookForBarriers("without a connection")
}

func (p *tab) lookForBarriers(where string) {
	p.t.Helper()
	result := eval[axeResult](p, `axe.run(document).then((r) => ({violations: r.violations, passed: r.passes.map((p) => p.id)}))`)
	if len(result.Passed) < 20 {
		p.t.Errorf("%s: only %d rules had something to look at: %v", where, len(result.Passed), result.Passed)
	}
	for _, v := range result.Violations {
		p.t.Errorf("%s: %s (%s): %s\n%s", where, v.ID, v.Impact, v.Help, nodes(v))
	}
}

func nodes(v violation) string {
	var b strings.Builder
	for i, node := range v.Nodes {
		if i == 3 {
			fmt.Fprintf(&b, "and %d more\n", len(v.Nodes)-i)
			break
		}
		fmt.Fprintf(&b, "%v: %s\n", node.Target, node.FailureSummary)
	}
	return b.String()
}
