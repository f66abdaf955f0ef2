// Package binaries builds the programs of this repository for tests: make test-real builds them once for all tests and
// passes their directory in STATUSD_BIN. A test that runs alone builds the programs that it needs.
package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/statusd/statusd/test/gobuild"
)

// Variable names the directory of programs that are built already.
const Variable = "STATUSD_BIN"

// The programs, by their paths in the directory.
const (
	Statusd       = "statusd"
	Shim          = "statusd-shim"
	StaticStatusd = "static/statusd" // for images: links no C
	ExampleServer = "example-server"
	Demo          = "demo"
)

type program struct {
	packagePath string
	static      bool
}

var programs = map[string]program{
	Statusd:       {packagePath: "cmd/statusd"},
	Shim:          {packagePath: "cmd/statusd-shim", static: true},
	StaticStatusd: {packagePath: "cmd/statusd", static: true},
	ExampleServer: {packagePath: "examples/webserver"},
	Demo:          {packagePath: "test/demo"},
}

// All are the names of the programs, in the order in which they are built.
func All() []string { return []string{Shim, Statusd, StaticStatusd, ExampleServer, Demo} }

// Build builds the programs into the directory, and shows on w how far it is.
func Build(ctx context.Context, w io.Writer, dir string, names ...string) error {
	for _, name := range names {
		p, ok := programs[name]
		if !ok {
			return fmt.Errorf("build %s: no such program", name)
		}
		build := gobuild.Command{Name: name, Flags: []string{"-o", filepath.Join(dir, name)}, Packages: []string{"github.com/statusd/statusd/" + p.packagePath}}
		if p.static {
			build.Flags = append(build.Flags, "-trimpath", "-ldflags", "-s -w")
			build.Env = []string{"CGO_ENABLED=0"}
		}
		if err := build.Run(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// BuildStatusd builds bin/statusd below the working directory for a campaign, shows on w how far it is, and returns the absolute path.
func BuildStatusd(ctx context.Context, w io.Writer) (string, error) {
	dir, err := filepath.Abs("bin")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, Statusd), Build(ctx, w, dir, Statusd)
}

// Path returns the path of a program: in the directory that the environment names, or built for this test.
func Path(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(Dir(t, name), name)
}

// Own returns a directory of this test that has the programs: their processes can be told from those of other tests.
func Own(t testing.TB, names ...string) string {
	t.Helper()
	built, dir := Dir(t, names...), t.TempDir()
	for _, name := range names {
		if os.Link(filepath.Join(built, name), filepath.Join(dir, name)) == nil {
			continue
		}
		content, err := os.ReadFile(filepath.Join(built, name)) // it is on another file system
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Dir returns a directory that has at least the programs.
func Dir(t testing.TB, names ...string) string {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		dir = t.TempDir()
		if err := Build(t.Context(), os.Stderr, dir, names...); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Fatalf("%s has no %s: %v", Variable, name, err)
		}
	}
	return dir
}
