package gobuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func module(t *testing.T, source string) Command {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Command{Name: "m", Dir: dir, Env: []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, Flags: []string{"-o", filepath.Join(dir, "m")}, Packages: []string{"."}}
}

func TestBuild_MakesTheProgram(t *testing.T) {
	c := module(t, "package main\n\nfunc main() { println(\"built\", "+quoted(t)+") }\n")
	if got, err := c.list(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("%q are to be compiled (%v), want one package", got, err)
	}
	if err := c.Run(t.Context(), &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "m")); err != nil {
		t.Error(err)
	}
}

// quoted is a text that no build before had, so that the cache has no program with it.
func quoted(t *testing.T) string { return "`" + t.TempDir() + "`" }

func TestBuild_ReturnsWhatTheCompilerReports(t *testing.T) {
	err := module(t, "package main\n\nfunc main() { undefinedName() }\n").Run(t.Context(), &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedName") {
		t.Errorf("got %v, want the message of the compiler", err)
	}
}

func TestTest_MakesATestBinary(t *testing.T) {
	c := module(t, "package main\n\nfunc main() { println("+quoted(t)+") }\n")
	c.Flags = nil
	if err := os.WriteFile(filepath.Join(c.Dir, "main_test.go"), []byte("package main\n\nimport \"testing\"\n\nfunc TestIt(*testing.T) {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.Dir, "m.test")
	if err := c.Test(t.Context(), &strings.Builder{}, "-o", file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
