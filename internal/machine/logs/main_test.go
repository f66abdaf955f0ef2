package logs

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if log := os.Getenv(logVariable); log != "" {
		runAsMonitor(log)
		return
	}
	goleak.VerifyTestMain(m)
}
