package outside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const root = "../../.."

// Another module makes a node of the parts, runs nodes of a runtime and of a provider and a fleet of 20 with pods as a Deployment has
// them, and holds its own journal to the conformance suite. The suite of runtimes is only compiled: statusd's own packages run it.
func TestKitOutsideThisModule(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"kit_test.go", "nodes_test.go"} {
		content, err := os.ReadFile(filepath.Join("testdata", "kit", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	command := exec.Command("go", "test", "-mod=mod", "-run", "Journal|Manager|Node", ".")
	command.Dir = module(t, "kit", files)
	command.Env = offline()
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// module writes a module that knows this one by a replace directive, and returns its directory.
func module(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	files["go.sum"] = string(sums)
	files["go.mod"] = fmt.Sprintf("module example.com/%s\n\ngo 1.26\n\nrequire github.com/statusd/statusd v0.0.0\n\nreplace github.com/statusd/statusd => %s\n", name, here)
	dir := t.TempDir()
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// offline is the environment of a Go command that finds all it needs in the module cache: what this module needs
// is all that the programs need.
func offline() []string { return append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off") }
