//go:build real

package apiside

import (
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil // one of client-go's sleeps
	shared.Main(m)
}
