package runtimetest

import (
	"os"
	"testing"
)

func makePipe(t *testing.T, _, name string) *os.File {
	t.Fatalf("the suite needs the named pipe %s, and Windows has none in its file systems: run the suite on Linux or macOS", name)
	return nil
}
