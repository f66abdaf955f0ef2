package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// All that is wrong is said at once: a wrong value does not hide a kubeconfig that cannot be used, nor manifests that cannot be read.
func TestCheckConfig_NamesValuesAndFilesAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no kubeconfig"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Embedded("node")
	c.StateDir, c.Kubeconfig, c.Manifests, c.ShutdownTimeout = t.TempDir(), file, file, -1
	err := CheckConfig(c)
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"shutdownTimeout", "kubeconfig", "manifests"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to name %s", err, want)
		}
	}
}
