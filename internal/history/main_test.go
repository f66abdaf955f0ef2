package history

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		writeForever(path)
	}
	goleak.VerifyTestMain(m)
}
