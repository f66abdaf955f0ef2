package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var example = regexp.MustCompile(`(?m)^func Example\w*\(\)`)

// A public package is a promise to other modules: each has a doc.go that says what it is for, and an
// Example that go doc and pkg.go.dev show.
func TestEveryPublicPackageHasADocumentAndAnExample(t *testing.T) {
	looked := 0
	for _, p := range list(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if p.Name == "main" || strings.Contains("/"+dir+"/", "/internal/") || dir == "" {
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
