package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// helpers is the helper functions of the tests of package status, written for statusd's manager: they count and make
// requests by its methods, where those of the kubelet reach into the stock manager.
//
//go:embed helpers_test.go.txt
var helpers []byte

// prepareStatus makes the tests of package status compile: helpers that reach into the stock manager are replaced, and the tests that do so
// themselves are left out.
func prepareStatus(dir string, without []string) error {
	if err := os.WriteFile(filepath.Join(dir, "helpers_test.go"), helpers, 0o644); err != nil {
		return err
	}
	own, err := parser.ParseFile(token.NewFileSet(), "helpers_test.go", helpers, 0)
	if err != nil {
		return err
	}
	remove := slices.Clone(without)
	for _, d := range own.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			remove = append(remove, f.Name.Name)
		}
	}
	file := filepath.Join(dir, "status_manager_test.go")
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	removed := map[string]bool{}
	tree.Decls = slices.DeleteFunc(tree.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		if ok && slices.Contains(remove, f.Name.Name) {
			removed[f.Name.Name] = true
			return true
		}
		return false
	})
	for _, name := range without {
		if !removed[name] {
			return fmt.Errorf("explained.txt leaves out %s, which does not exist", name)
		}
	}
	dropUnusedImports(tree)
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	return format.Node(out, fset, tree)
}

// dropUnusedImports removes the imports that no declaration names any more.
func dropUnusedImports(tree *ast.File) {
	used := map[string]bool{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, d := range tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			continue
		}
		g.Specs = slices.DeleteFunc(g.Specs, func(s ast.Spec) bool { return !used[importName(s.(*ast.ImportSpec))] })
	}
	tree.Comments = nil // they would be put between what is left
}

func importName(s *ast.ImportSpec) string {
	if s.Name != nil {
		return s.Name.Name
	}
	file, _ := strconv.Unquote(s.Path.Value) // the parser has read it
	name := path.Base(file)
	if strings.HasPrefix(name, "v") && len(name) <= 3 { // a version
		name = path.Base(path.Dir(file))
	}
	return name
}
