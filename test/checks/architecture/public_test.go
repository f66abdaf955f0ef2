package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var example = regexp.MustCompile(`(?m)^func Example\w*\(\)`)

// A public package is a promise to other modules: each has a doc.go that says what it is for, and an
// Example that go doc and pkg.go.dev show.
func TestEveryPublicPackageHasADocumentAndAnExample(t *testing.T) {
	looked := 0
	for _, p := range list(t) {
		dir := strings.TrimPrefix(p.ImportPath, module+"/")
		if !public(p) {
			continue
		}
		looked++
		if _, err := os.Stat(filepath.Join(root, dir, "doc.go")); err != nil {
			t.Errorf("%s has no doc.go", dir)
		}
		if !hasExample(t, filepath.Join(root, dir)) {
			t.Errorf("%s has no Example test", dir)
		}
	}
	if looked < 10 {
		t.Errorf("looked at %d public packages only", looked)
	}
}

// A public package has a user outside this module: a program of examples/, or the module that test/checks/outside
// builds. What no such program imports belongs below internal/.
func TestEveryPublicPackageHasAUserOutside(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range []string{"examples", "test/checks/outside/testdata"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				used[strings.Trim(spec.Path.Value, `"`)] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for imported := range used {
		if strings.HasPrefix(imported, module+"/internal/") {
			t.Errorf("a program outside imports %s, which another module cannot", imported)
		}
	}
	for _, p := range list(t) {
		if public(p) && !used[p.ImportPath] {
			t.Errorf("%s is public, and no program of examples/ or test/checks/outside uses it", p.ImportPath)
		}
	}
}

// public reports whether programs outside this module can import the package, and are meant to.
func public(p goPackage) bool {
	dir := strings.TrimPrefix(p.ImportPath, module+"/")
	return p.Name != "main" && len(p.GoFiles) > 0 && !strings.Contains("/"+dir+"/", "/internal/") && !under(dir, "test")
}

// A stranger holds the tree in the head: few directories at its top, and few packages that are a promise.
func TestTheTreeIsSmall(t *testing.T) {
	const most = 16
	var packages []string
	for _, p := range list(t) {
		if public(p) {
			packages = append(packages, p.ImportPath)
		}
	}
	if len(packages) > most {
		t.Errorf("%d public packages, want at most %d: what no program outside this module imports belongs below internal/\n%s",
			len(packages), most, strings.Join(packages, "\n"))
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	written := []string{"bin", "build", "state"} // by make, and not part of the tree
	var top []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(written, e.Name()) {
			top = append(top, e.Name())
		}
	}
	if len(top) > most {
		t.Errorf("%d directories at the top of the tree, want at most %d: %s", len(top), most, strings.Join(top, " "))
	}
}

func hasExample(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if example.Match(source) {
			return true
		}
	}
	return false
}
