package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// file is the name of a Go file in a comment, without a directory before it.
var file = regexp.MustCompile(`(?:^|[\s("])([a-z][a-z0-9_]*\.go)\b`)

// namedFiles returns the Go files that comments name without a directory.
func namedFiles(text string) (names []string) {
	for line := range strings.Lines(text) {
		comment, is := strings.CutPrefix(strings.TrimSpace(line), "//")
		if !is {
			continue
		}
		for _, m := range file.FindAllStringSubmatch(comment, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// The comment of a package that names a file of the package is a table of contents, and must be true.
func TestPackageCommentsNameFilesThatExist(t *testing.T) {
	found := 0
	for _, p := range list(t) {
		dir := filepath.Join(root, strings.TrimPrefix(p.ImportPath, module+"/"))
		text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		if err != nil {
			continue // a command, or a package of one file
		}
		for _, name := range namedFiles(string(text)) {
			found++
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s/doc.go names %s, which the package does not have", strings.TrimPrefix(p.ImportPath, module+"/"), name)
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d names of files in package comments, want more: the expression does not match any more", found)
	}
}

func TestNamedFilesAreSeen(t *testing.T) {
	got := strings.Join(namedFiles("// open.go makes it (close.go ends it), see status/cache.go.\npackage p // code.go\n"), " ")
	if got != "open.go close.go" {
		t.Errorf("got %q, want the two files of the package", got)
	}
}
