package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pkg is a package as go list prints it.
type pkg struct {
	ImportPath                         string
	Dir                                string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

func (p *pkg) tests() []string { return slices.Concat(p.TestGoFiles, p.XTestGoFiles) }

// list returns the packages that match the patterns and have tests.
func list(ctx context.Context, tags string, patterns []string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-tags", tags, "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)...)
	var problem strings.Builder
	cmd.Stderr = &problem
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, problem.String())
	}
	var packages []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if len(p.tests()) > 0 {
			packages = append(packages, p)
		}
	}
}

// concurrent are packages whose importers have something that runs at the same time.
var concurrent = []string{"sync", "sync/atomic", "testing/synctest", "net/http/httptest", "golang.org/x/sync/errgroup", "go.uber.org/goleak"}

// isConcurrent reports whether a package or its tests start goroutines or guard against them.
func (p *pkg) isConcurrent() (bool, error) {
	for _, name := range slices.Concat(p.GoFiles, p.tests()) {
		file, err := parse(filepath.Join(p.Dir, name))
		if err != nil {
			return false, err
		}
		if startsGoroutines(file) || slices.ContainsFunc(file.Imports, isConcurrentImport) {
			return true, nil
		}
	}
	return false, nil
}

func isConcurrentImport(spec *ast.ImportSpec) bool {
	imported, _ := strconv.Unquote(spec.Path.Value)
	return slices.Contains(concurrent, imported)
}

func startsGoroutines(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			found = true
		}
		return !found
	})
	return found
}

// testsTagged are the names of the tests in files with a build tag.
func (p *pkg) testsTagged(tag string) (names []string, err error) {
	for _, name := range p.tests() {
		file, err := parse(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		if tagOf(file) == tag {
			names = append(names, testsIn(file)...)
		}
	}
	return names, nil
}

func parse(path string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
}

func tagOf(file *ast.File) string {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && c.Pos() < file.Package {
				return expr.String()
			}
		}
	}
	return ""
}

func testsIn(file *ast.File) (names []string) {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && function.Name.Name != "TestMain" && isTest(function.Name.Name) {
			names = append(names, function.Name.Name)
		}
	}
	return names
}

// isTest reports whether go test runs a function of the name.
func isTest(name string) bool {
	for _, kind := range []string{"Test", "Fuzz", "Example"} {
		if rest, ok := strings.CutPrefix(name, kind); ok {
			first, _ := utf8.DecodeRuneInString(rest)
			return rest == "" || !unicode.IsLower(first)
		}
	}
	return false
}
