package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/test/mutants/mutant"
)

const program = `package main

import "fmt"

type T struct{ n int }

func (t *T) more(by ...int) (sum int, err error) {
	for _, b := range by {
		sum += b
	}
	return sum + t.n, nil
}

func (T) name(_ int, suffix string) string { return "plain" + suffix }

func largest[E int | string](all []E) (best E) {
	for _, e := range all {
		if e > best {
			best = e
		}
	}
	return best
}

func shout() { fmt.Print("quiet ") }

func unnamed(int) string { return "u" }

func main() {
	sum, _ := (&T{1}).more(2, 3)
	shout()
	fmt.Println(sum, T{}.name(1, "!"), largest([]int{1, 3, 2}), unnamed(1))
}
`

func TestWeave_ChoosesTheMutantAtRunTime(t *testing.T) {
	mutants := map[int]mutant.Mutant{
		0: {From: "sum += b", To: "sum -= b"},
		1: {From: "sum + t.n", To: "sum"},
		2: {From: `"plain"`, To: `"changed"`},
		3: {From: "e > best", To: "e < best"},
		4: {From: `"quiet "`, To: `"loud "`},
		5: {From: `return "u"`, To: `return "v"`},
	}
	changed, err := weave(program, mutants)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "main.go": changed.text,
		"choice.go": fmt.Sprintf(choice, "main"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "m", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, changed.text)
	}
	for number, want := range map[string]string{
		"": "quiet 6 plain! 3 u\n", "0": "quiet -4 plain! 3 u\n", "1": "quiet 5 plain! 3 u\n", "2": "quiet 6 changed! 3 u\n",
		"3": "quiet 6 plain! 0 u\n", "4": "loud 6 plain! 3 u\n", "5": "quiet 6 plain! 3 v\n",
	} {
		program := filepath.Join(dir, "m"+mutantEnd(number))
		if number != "" {
			if err := os.Link(filepath.Join(dir, "m"), program); err != nil {
				t.Fatal(err)
			}
		}
		if output, err := exec.Command(program).CombinedOutput(); err != nil || string(output) != want {
			t.Errorf("mutant %q prints %q (%v), want %q", number, output, err, want)
		}
	}
}

func TestWeave_OutsideAFunctionIsAnError(t *testing.T) {
	if _, err := weave(program, map[int]mutant.Mutant{0: {From: "n int }", To: "n int64 }"}}); err == nil {
		t.Error("a mutant of a type is woven")
	}
}

func TestBlame_FindsTheMutantThatDoesNotCompile(t *testing.T) {
	changed, err := weave(program, map[int]mutant.Mutant{4: {From: `fmt.Print("quiet ")`, To: "no such"}, 5: {From: `return "u"`, To: "return"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = parser.ParseFile(token.NewFileSet(), "a/b.go", changed.text, 0); err == nil {
		t.Fatal("the mutant compiles")
	}
	w := weaving{files: map[string]woven{"a/b.go": changed}}
	if got := w.blame(err.Error() + "\n"); len(got) != 1 || got[0] != 4 {
		t.Errorf("the message %q is that of the mutants %v, want 4:\n%s", err, got, strings.TrimSpace(changed.text))
	}
}
