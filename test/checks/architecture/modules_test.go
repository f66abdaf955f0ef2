package architecture

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// required is a line of a require directive: a module and its version, and a comment if it is indirect.
var required = regexp.MustCompile(`(?m)^(?:\t|require )([a-z][^\s(]+) v\S+( // indirect)?$`)

// directModules returns the modules that a go.mod requires for imports of its own packages.
func directModules(mod string) (paths []string) {
	for _, m := range required.FindAllStringSubmatch(mod, -1) {
		if m[2] == "" {
			paths = append(paths, m[1])
		}
	}
	return paths
}

// A dependency has a reason: ARCHITECTURE.md has a row for each module that this one requires, and for no other.
func TestEveryModuleHasAReason(t *testing.T) {
	_, table, _ := strings.Cut(document(t, "ARCHITECTURE.md"), "## Dependencies\n")
	var reasons []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.HasPrefix(cells[1], "--") && cells[1] != " module " {
			reasons = append(reasons, strings.Split(strings.TrimPrefix(strings.TrimSpace(cells[1]), "tests: "), ", ")...)
		}
	}
	modules := directModules(document(t, "go.mod"))
	for _, path := range modules {
		if !slices.Contains(reasons, path) {
			t.Errorf("go.mod requires %s, and the table of ARCHITECTURE.md does not say why", path)
		}
	}
	for _, path := range reasons {
		if !slices.Contains(modules, path) {
			t.Errorf("ARCHITECTURE.md has a reason for %s, which go.mod does not require", path)
		}
	}
}

func TestDirectModulesAreRead(t *testing.T) {
	mod := "module m\n\nrequire k8s.io/api v0.36.3\n\nrequire (\n\tgithub.com/a/b v1.0.0\n\tgithub.com/c/d v1.0.0 // indirect\n)\n"
	if got := directModules(mod); !slices.Equal(got, []string{"k8s.io/api", "github.com/a/b"}) {
		t.Errorf("got %q, want the two direct ones", got)
	}
}
