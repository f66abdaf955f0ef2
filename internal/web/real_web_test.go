//go:build real

package web_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The modules that need no document are tested by node: unit has their tests.
func TestModules(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("node is not installed; the tests of the modules need it (Debian: apt-get install nodejs)")
	}
	tests, err := filepath.Glob("unit/*.test.js")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests in unit: %v", err)
	}
	if output, err := exec.Command(node, append([]string{"--test"}, tests...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
