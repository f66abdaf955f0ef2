package rules_test

import (
	"fmt"

	"github.com/statusd/statusd/rules"
)

// The starter pack is embedded.
func ExamplePack() {
	fmt.Println(rules.Pack().Rule("NoSuchRule") == nil)
	// Output: true
}
