package engine

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		childMain(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
