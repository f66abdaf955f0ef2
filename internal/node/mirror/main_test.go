//go:build !real

package mirror

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// One of client-go's handlers sleeps until a second after the last error by the clock
	// at program start: for decades, where a test's virtual time begins in the year 2000.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}
