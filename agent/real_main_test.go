//go:build real

package agent

import (
	"os"
	"testing"

	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) {
	if process.IsShim() {
		os.Exit(process.ShimMain())
	}
	shared.Main(m) // which also looks for goroutines that an agent has left
}
