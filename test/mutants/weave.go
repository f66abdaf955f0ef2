package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/statusd/statusd/test/mutants/mutant"
)

// choice is a file of a package with mutants. The name of the executable chooses the mutant, and not the environment, which what
// a test starts need not have: status.test.mutant12. Without such an end of its name a program does what the tree does.
const choice = `package %s

import (
	"os"
	"strings"
)

var statusdMutant = func() string {
	program, _ := os.Executable()
	_, number, _ := strings.Cut(program, ".mutant")
	return number
}()
`

// A Go file that has all its mutants: each function that a mutant changes is there once more for each of them, and begins by
// choosing:
//
//	func (m *Manager) f(x int) error {
//		switch statusdMutant {
//		case "12":
//			return m.f_mutant12(x)
//		}
//		…
//
// So the tests of a package are compiled and linked once, and not once for each mutant.
type woven struct {
	text  string
	spans []span
}

// span is the lines of the file that belong to a mutant.
type span struct {
	first, last int
	mutant      int
}

// weave returns the source with all mutants, by number. Each mutant changes a function.
func weave(source string, mutants map[int]mutant.Mutant) (woven, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return woven{}, err
	}
	edits, appended := map[int]string{}, ""
	var spans []span
	lines := strings.Count(source, "\n") + 1
	chosen := map[*ast.FuncDecl]string{}
	for _, number := range sortedKeys(mutants) {
		m := mutants[number]
		at := strings.Index(source, m.From)
		function := functionAt(file, at, at+len(m.From))
		if function == nil {
			return woven{}, fmt.Errorf("%q is in no function of %s: a mutant changes a function", m.From, m.File)
		}
		if chosen[function] == "" {
			name(function, edits)
		}
		chosen[function] += fmt.Sprintf("case %q: %s; ", strconv.Itoa(number), call(function, number))
		begin, end := int(function.Pos())-1, int(function.End())-1
		changed := source[begin:at] + m.To + source[at+len(m.From):end]
		declared := regexp.MustCompile(`\b` + function.Name.Name + `[\[(]`).FindStringIndex(changed)
		if declared == nil {
			return woven{}, fmt.Errorf("%q changes the name of a function of %s", m.From, m.File)
		}
		changed = changed[:declared[1]-1] + suffix(number) + changed[declared[1]-1:]
		appended += "\n" + changed + "\n"
		spans = append(spans, span{first: lines + 1, last: lines + 1 + strings.Count(changed, "\n"), mutant: number})
		lines += strings.Count(changed, "\n") + 2
	}
	for function, cases := range chosen {
		edits[int(function.Body.Lbrace)] += " switch statusdMutant { " + cases + "}; "
	}
	return woven{text: apply(source, edits) + appended, spans: spans}, nil
}

func sortedKeys(mutants map[int]mutant.Mutant) []int {
	keys := make([]int, 0, len(mutants))
	for key := range mutants {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// apply inserts texts at offsets. None of them has a new line, so that the lines of the file stay where they are.
func apply(source string, edits map[int]string) string {
	offsets := make([]int, 0, len(edits))
	for offset := range edits {
		offsets = append(offsets, offset)
	}
	slices.Sort(offsets)
	var text strings.Builder
	last := 0
	for _, offset := range offsets {
		text.WriteString(source[last:offset])
		text.WriteString(edits[offset])
		last = offset
	}
	text.WriteString(source[last:])
	return text.String()
}

func suffix(number int) string { return fmt.Sprintf("_mutant%d", number) }

// functionAt is the function that has the text between the offsets.
func functionAt(file *ast.File, from, to int) *ast.FuncDecl {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Body != nil && int(function.Pos())-1 <= from && to <= int(function.End())-1 && function.Name.Name != "init" {
			return function
		}
	}
	return nil
}

// name inserts names for what a signature does not name, so that a call can pass it on.
func name(function *ast.FuncDecl, edits map[int]string) {
	for _, list := range []*ast.FieldList{function.Recv, function.Type.Params} {
		number := 0
		for _, field := range fields(list) {
			if len(field.Names) == 0 {
				edits[int(field.Type.Pos())-1] += passed(list == function.Recv, number) + " "
				number++
			}
			for _, n := range field.Names {
				if n.Name == "_" {
					edits[int(n.Pos())] += passed(list == function.Recv, number) // after the underscore, which begins the name
				}
				number++
			}
		}
	}
}

func fields(list *ast.FieldList) []*ast.Field {
	if list == nil {
		return nil
	}
	return list.List
}

func passed(receiver bool, number int) string {
	if receiver {
		return "mutantReceiver"
	}
	return fmt.Sprintf("mutantArgument%d", number)
}

// call is the statement that calls the mutant's copy of a function with its arguments.
func call(function *ast.FuncDecl, number int) string {
	target := function.Name.Name + suffix(number)
	if function.Recv != nil {
		target = names(function.Recv, true)[0] + "." + target
	}
	if function.Type.TypeParams != nil {
		target += "[" + strings.Join(names(function.Type.TypeParams, false), ", ") + "]"
	}
	arguments := strings.Join(names(function.Type.Params, false), ", ")
	if list := fields(function.Type.Params); len(list) > 0 {
		if _, variadic := list[len(list)-1].Type.(*ast.Ellipsis); variadic {
			arguments += "..."
		}
	}
	statement := target + "(" + arguments + ")"
	if function.Type.Results == nil {
		return statement + "; return"
	}
	return "return " + statement
}

// names returns the names of the fields, with generated names for fields without one.
func names(list *ast.FieldList, receiver bool) (all []string) {
	for _, field := range fields(list) {
		if len(field.Names) == 0 {
			all = append(all, passed(receiver, len(all)))
		}
		for _, n := range field.Names {
			if n.Name == "_" {
				all = append(all, "_"+passed(receiver, len(all)))
			} else {
				all = append(all, n.Name)
			}
		}
	}
	return all
}

// weaving is the tree with all its mutants, as an overlay of go build.
type weaving struct {
	replace map[string]string // path in the tree to path of what replaces it
	files   map[string]woven  // by path in the tree
}

// weaveTree writes the files that replace those of the tree below dir.
func weaveTree(root, dir string, mutants []mutant.Mutant) (weaving, error) {
	w := weaving{replace: map[string]string{}, files: map[string]woven{}}
	byFile := map[string]map[int]mutant.Mutant{}
	for i, m := range mutants {
		if byFile[m.File] == nil {
			byFile[m.File] = map[int]mutant.Mutant{}
		}
		byFile[m.File][i] = m
	}
	for file, of := range byFile {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return w, err
		}
		changed, err := weave(string(source), of)
		if err != nil {
			return w, err
		}
		w.files[file] = changed
		if err := w.add(root, dir, file, changed.text); err != nil {
			return w, err
		}
		if err := w.add(root, dir, filepath.Join(filepath.Dir(file), "statusd_mutant.go"), fmt.Sprintf(choice, packageOf(string(source)))); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *weaving) add(root, dir, file, text string) error {
	copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
	w.replace[filepath.Join(root, file)] = copied
	return os.WriteFile(copied, []byte(text), 0o644)
}

func packageOf(source string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.PackageClauseOnly)
	if err != nil {
		return ""
	}
	return file.Name.Name
}

// blame returns the mutants whose lines the compiler's messages name.
func (w *weaving) blame(messages string) (numbers []int) {
	for line := range strings.Lines(messages) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		at, err := strconv.Atoi(parts[1])
		for file, changed := range w.files {
			if err != nil || !strings.HasSuffix(filepath.ToSlash(parts[0]), cmp.Or(file, "?")) && filepath.Base(parts[0]) != strings.ReplaceAll(file, "/", "_") {
				continue
			}
			for _, s := range changed.spans {
				if s.first <= at && at <= s.last {
					numbers = append(numbers, s.mutant)
				}
			}
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
