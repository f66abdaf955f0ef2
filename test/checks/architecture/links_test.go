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

// documents are the Markdown files of the tree, by their paths from its root.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path == filepath.Join(root, "build"): // what make targets make, such as a whole Debian
			return filepath.SkipDir
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "state"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			relative, err := filepath.Rel(root, path)
			paths = append(paths, relative)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	linked    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInName = regexp.MustCompile(`[^\pL\pN_ -]`)
	target    = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	makes     = regexp.MustCompile("(?m)(?:`|^    )make ((?:[a-z][a-z0-9-]* ?)+)")
)

// anchors are the names by which GitHub links to the headings of a text.
func anchors(text string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		plain := notInName.ReplaceAllString(linked.ReplaceAllString(h[1], "$1"), "")
		names = append(names, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(plain)), " ", "-"))
	}
	return names
}

func TestLinksOfDocumentsResolve(t *testing.T) {
	for _, name := range documents(t) {
		text := document(t, name)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			to := name
			if file != "" {
				to = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(to, ".md") && !slices.Contains(anchors(document(t, to)), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", name, m[1], to)
			}
		}
	}
}

// A reader who begins with README finds every document by links.
func TestEveryDocumentIsReached(t *testing.T) {
	all := documents(t)
	reached, todo := map[string]bool{"README.md": true}, []string{"README.md"}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		for _, m := range link.FindAllStringSubmatch(document(t, name), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			to := filepath.Join(filepath.Dir(name), file)
			if readme := filepath.Join(to, "README.md"); slices.Contains(all, readme) {
				to = readme
			}
			if slices.Contains(all, to) && !reached[to] {
				reached[to] = true
				todo = append(todo, to)
			}
		}
	}
	for _, name := range all {
		if !reached[name] {
			t.Errorf("no chain of links leads from README.md to %s", name)
		}
	}
}

func TestDocumentsNameTargetsThatExist(t *testing.T) {
	var targets []string
	for _, m := range target.FindAllStringSubmatch(document(t, "Makefile"), -1) {
		targets = append(targets, m[1])
	}
	for _, name := range documents(t) {
		for _, m := range makes.FindAllStringSubmatch(document(t, name), -1) {
			for _, one := range strings.Fields(m[1]) {
				if !slices.Contains(targets, one) {
					t.Errorf("%s names make %s, which the Makefile does not have", name, one)
				}
			}
		}
	}
}
