//go:build real

package statustest_test

import (
	"testing"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }
