//go:build !real

package agent

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/statusd/statusd/runtime/process"
)

func TestMain(m *testing.M) {
	if process.IsShim() {
		os.Exit(process.ShimMain())
	}
	goleak.VerifyTestMain(m)
}
