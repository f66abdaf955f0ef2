//go:build real

package overview_test

import (
	"testing"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { new(controlplanetest.Shared).Main(m) }
