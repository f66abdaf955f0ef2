package deploy

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// kustomized are the files that are applied by default.
func kustomized(t testing.TB) []string {
	t.Helper()
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(readFile(t, "deploy/observe/kustomization.yaml"), &kustomization); err != nil {
		t.Fatal(err)
	}
	return kustomization.Resources
}

// optional are the files for what is off by default.
var optional = []string{"writer.yaml", "reader.yaml", "../repair/rights.yaml", "../guard/rights.yaml", "servicemonitor.yaml"}

// Every file is either applied by default or listed as optional.
func TestEveryManifestIsKnown(t *testing.T) {
	known := map[string]bool{"kustomization.yaml": true}
	for _, name := range append(kustomized(t), optional...) {
		known[name] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "observe", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[filepath.Base(file)] {
			t.Errorf("%s is neither in kustomization.yaml nor optional", file)
		}
	}
	readme := string(readFile(t, "deploy/README.md"))
	for name := range known {
		if !strings.Contains(readme, filepath.Join("observe", name)) {
			t.Errorf("deploy/README.md does not explain %s", filepath.Join("observe", name))
		}
	}
}
