//go:build real

package fleet_test

import (
	"testing"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { new(controlplanetest.Shared).Main(m) }
