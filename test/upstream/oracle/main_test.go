package oracle

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// How many cases the functions are compared in, unless -rapid.checks says otherwise.
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
