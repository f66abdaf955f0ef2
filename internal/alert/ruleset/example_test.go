package ruleset_test

import (
	"fmt"

	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// Mistakes are found when a file is loaded, with their places and what is known there.
func ExampleParse() {
	_, err := ruleset.Parse("shop.yaml", []byte(`
apiVersion: statusd/v1alpha1
kind: Rules
groups:
  - name: shop
    rules:
      - name: CheckoutFailed
        expr: pod.labels["app"] == "checkout" && pod.fase == "Failed"
        severity: catastrophic
`))
	for _, m := range err.(rulefile.Mistakes) {
		fmt.Printf("%s:%d:%d: %.34s\n", m.File, m.Line, m.Column, m.Message)
	}
	// Output:
	// shop.yaml:8:54: Pod has no field fase (did you mea
	// shop.yaml:9:19: is "catastrophic", want critical,
}

// The starter pack is embedded.
func ExamplePack() {
	r := ruleset.Pack().Rule("PodStatusNotDelivered")
	fmt.Println(r.Scope, r.Severity, r.Expr)
	// Output: pod warning age(pod.delivery.since) > duration("30s")
}
