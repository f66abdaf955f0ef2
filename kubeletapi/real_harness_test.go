//go:build real

package kubeletapi_test

import (
	"testing"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }
