//go:build real

package observer

import (
	"testing"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) } // which also looks for goroutines that an observer has left
