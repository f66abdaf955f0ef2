package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

func document(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// declared returns the functions of go test in the tree, nested modules included.
func declared(t *testing.T) []string {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	written := []string{filepath.Join(root, ".git"), filepath.Join(root, "bin"), filepath.Join(root, "build")}
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains(written, path) {
			return fs.SkipDir // others write there meanwhile
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, found := range declaration.FindAllStringSubmatch(string(data), -1) {
			names = append(names, found[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

var mention = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)\\w*)(…?)`")

// missing returns the tests that a text names and the tree does not have. A name that ends in
// "…" stands for all that begin so.
func missing(text string, names []string) []string {
	var absent []string
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		name, open := m[1], m[2] != ""
		if !slices.ContainsFunc(names, func(n string) bool { return n == name || open && strings.HasPrefix(n, name) }) {
			absent = append(absent, name)
		}
	}
	return absent
}

func TestDocumentsNameTestsThatExist(t *testing.T) {
	names := declared(t)
	for _, page := range documents(t) {
		for _, name := range missing(document(t, page), names) {
			t.Errorf("%s names %s, and there is no such test", page, name)
		}
	}
}

func TestEveryBugHasATest(t *testing.T) {
	rows := map[string]bool{}
	for line := range strings.Lines(document(t, "docs/internals/bugs.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 5 || cells[1] == " what happened " || strings.HasPrefix(cells[1], "---") {
			continue
		}
		if rows[line] {
			t.Errorf("docs/internals/bugs.md has this row twice: %s", strings.TrimSpace(cells[1]))
		}
		rows[line] = true
		held := cells[len(cells)-2]
		if !mention.MatchString(held) && !strings.Contains(held, "`make ") && !strings.Contains(held, "by construction: ") {
			t.Errorf("docs/internals/bugs.md: no test keeps this bug away: %s", strings.TrimSpace(cells[1]))
		}
	}
	if len(rows) < 100 {
		t.Errorf("read %d bugs; the test does not understand the table any more", len(rows))
	}
}

// The table of packages is the first thing that a contributor reads.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text := document(t, "ARCHITECTURE.md")
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		switch parts := strings.Split(name, "/"); {
		case name == "", strings.Contains(name, "/internal/"): // private to one package
			continue
		case parts[0] == "internal" && parts[1] != "node", parts[0] == "test":
			name = strings.Join(parts[:2], "/")
		case parts[0] == "examples":
			name = "examples"
		}
		if !strings.Contains(text, "["+name+"]") && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not mention %s: add it to the table of packages, or to the text below it", name)
		}
	}
}

// The tests above are only worth something if the checks can fail.
func TestMissingTestsAreSeen(t *testing.T) {
	names := []string{"TestA", "TestP1_Right"}
	text := "`TestA`, `TestP1_…`, `TestGone`, `FuzzGone`, `make test`"
	if got := missing(text, names); !slices.Equal(got, []string{"TestGone", "FuzzGone"}) {
		t.Errorf("got %q, want the two that do not exist", got)
	}
}
