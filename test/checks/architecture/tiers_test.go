package architecture

import (
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// realParts are packages that need more than Go: a control plane, a stock kubelet, a browser, programs that make builds. Packages
// below them count too.
var realParts = []string{
	module + "/test/controlplane", module + "/test/stock", module + "/test/scenes", module + "/test/alertmanagertest", module + "/test/binaries", module + "/test/dbustest",
	"github.com/chromedp",
}

// realPrograms are programs of .ci/packages and programs that make builds: a test that starts one needs more than Go.
var realPrograms = []string{
	"chromium", "containerd", "dbus-daemon", "dpkg-deb", "kubectl", "node", "npm", "prometheus-alertmanager", "promtool", "runc", "systemctl", "systemd-analyze",
}

// bounds of waits that measure the machine.
var bounds = regexp.MustCompile(`WithTimeout\(t\.Context\(\), [0-9* ]*time\.\w+\)`)

// A test of make test needs only Go; what needs more is in a file named real_*_test.go with the build tag real, which make
// test-real runs.
func TestFilesWithoutTheTagNeedOnlyGo(t *testing.T) {
	tagged := 0
	for _, name := range testFiles(t) {
		file := parse(t, name)
		if file.tag == "systemd" { // make guard-systemd
			continue
		}
		if (file.tag == "real") != strings.HasPrefix(path.Base(name), "real_") {
			t.Errorf("%s: files with //go:build real are named real_*_test.go, and no others", name)
		}
		if file.tag == "real" {
			tagged++
			for _, bound := range bounds.FindAllString(document(t, name), -1) {
				t.Errorf("%s: %s fails on a slow machine: wait with patience.Context, which ends with the test run", name, bound)
			}
			continue
		}
		for _, need := range file.needs {
			t.Errorf("%s uses %s, which needs more than Go: make test must not; move the test to a file real_*_test.go with //go:build real", name, need)
		}
	}
	if tagged < 50 {
		t.Errorf("found %d files with the tag; the test looks at nothing", tagged)
	}
}

type testFile struct {
	tag   string
	needs []string
}

// testFiles are the files of tests of the root module, by their paths from its root.
func testFiles(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		nested := []string{".git", "bin", "build", "state", "test/controlplane/server", "test/e2e/suite", "test/upstream", "test/tools", "test/install"}
		if entry.IsDir() && slices.Contains(nested, relative) {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, "_test.go") {
			names = append(names, relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func parse(t *testing.T, name string) testFile {
	t.Helper()
	return read(t, name, document(t, name))
}

// read finds the tag of a file, and what of realParts it imports and of realPrograms it starts.
func read(t *testing.T, name, source string) (f testFile) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && c.Pos() < file.Package {
				f.tag = expr.String()
			}
		}
	}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		self := path.Join(module, path.Dir(name))
		if slices.ContainsFunc(realParts, func(part string) bool { return under(imported, part) && imported != self }) {
			f.needs = append(f.needs, imported)
		}
	}
	f.needs = append(f.needs, programs(file)...)
	return f
}
