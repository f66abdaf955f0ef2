package standard

import (
	"testing"

	"github.com/statusd/statusd/internal/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) } // which also looks for goroutines that are left
