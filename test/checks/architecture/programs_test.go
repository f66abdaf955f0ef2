package architecture

import (
	"go/ast"
	"slices"
	"strconv"
	"testing"
)

// programs are those of realPrograms that a file passes to a function of os/exec.
func programs(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if function, ok := call.Fun.(*ast.SelectorExpr); !ok || !isExec(function) {
			return true
		}
		for _, argument := range call.Args {
			if literal, ok := argument.(*ast.BasicLit); ok {
				if name, err := strconv.Unquote(literal.Value); err == nil && slices.Contains(realPrograms, name) {
					found = append(found, name)
				}
			}
		}
		return true
	})
	return found
}

func isExec(function *ast.SelectorExpr) bool {
	from, ok := function.X.(*ast.Ident)
	return ok && from.Name == "exec" && slices.Contains([]string{"Command", "CommandContext", "LookPath"}, function.Sel.Name)
}

// The test of the tiers is only worth something if it can fail.
func TestNeedsOfAFileAreSeen(t *testing.T) {
	got := read(t, "a_test.go", `//go:build !real

package a

import (
	"os/exec"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func f() { exec.Command("promtool", "check"); exec.Command("sh"); exec.LookPath("node") }
`)
	if want := []string{module + "/test/controlplane/controlplanetest", "promtool", "node"}; got.tag != "!real" || !slices.Equal(got.needs, want) {
		t.Errorf("got %+v, want the tag !real and %q", got, want)
	}
}
