package web_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const axe = "../build/axe-core-4.14.0/axe.min.js"

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
		t.Fatalf("axe-core is not there; web/fetch-axe fetches it, and make test calls that: %v", err)
	}
	f := startFake(t, crowd()...)
	for _, look := range []struct {
		theme string
		width int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 360}} {
		page := openTab(t, f.page(""), scheme(look.theme))
		page.size(look.width, 800)
		page.live()
		page.do(string(script))
		for _, hash := range []string{"#/", "#/pods/shop/orders-5c44", "#/pods/shop/cart-7d9f", "#/node"} {
			page.goTo(hash)
			page.do(`document.querySelector('#pod-view:not([hidden]) details')?.setAttribute('open', '')`)
			result := eval[axeResult](page, `axe.run(document).then((r) => ({violations: r.violations, passed: r.passes.map((p) => p.id)}))`)
			if len(result.Passed) < 20 {
				t.Errorf("%v, %s: only %d rules had something to look at: %v", look, hash, len(result.Passed), result.Passed)
			}
			for _, v := range result.Violations {
				t.Errorf("%v, %s: %s (%s): %s\n%s", look, hash, v.ID, v.Impact, v.Help, nodes(v))
			}
		}
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
