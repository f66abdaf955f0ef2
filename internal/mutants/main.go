// Command mutants shows that the tests of the invariants can fail: it takes out the line that
// guards an invariant, one at a time in a copy of the tree, and runs the tests that are said to
// hold it. A mutant that survives is an invariant without a test.
//
//	go run ./internal/mutants            all of mutants.txt
//	go run ./internal/mutants -only 3    those of invariant 3
package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/internal/mutants/mutant"
)

//go:embed mutants.txt
var list string

func main() {
	only := flag.String("only", "", "the invariant to look at")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	mutants, err := parse()
	if err != nil {
		return err
	}
	tree, err := copyTree()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	return mutant.TryAll(mutants, only, func(m mutant.Mutant) (string, bool, error) { return try(m, tree) })
}

func parse() ([]mutant.Mutant, error) {
	mutants, err := mutant.Parse(list, "invariant", "tests")
	if err != nil {
		return nil, fmt.Errorf("mutants.txt: %w", err)
	}
	return mutants, nil
}

// copyTree copies what git tracks to a temporary folder.
func copyTree() (string, error) {
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return "", err
	}
	script := `cd "$1" && git ls-files -z -- '*.go' go.mod go.sum web/page rules guard internal/stock status/testdata podstatus/testdata api/testdata cmd/statusd/testdata | tar --null -T - -cf - | tar -xf - -C "$2"`
	if out, err := exec.Command("sh", "-c", script, "sh", strings.TrimSpace(string(top)), dir).CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("copy the tree: %w: %s", err, out)
	}
	return dir, nil
}

// try applies the mutant, runs its tests and takes it back. It returns the test that failed.
func try(m mutant.Mutant, tree string) (killer string, killed bool, err error) {
	path := filepath.Join(tree, m.File)
	original, err := os.ReadFile(path)
	if err != nil {
		return "", false, err
	}
	mutated, err := m.Apply(tree)
	if err != nil {
		return "", false, err
	}
	if err := os.WriteFile(path, mutated, 0o644); err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, original, 0o644)) }()
	cmd := exec.Command("go", "test", "-timeout", "5m", "-run", m.Tests, "./"+cmp.Or(m.In, filepath.Dir(m.File)))
	cmd.Dir = tree
	out, testErr := cmd.CombinedOutput()
	if testErr == nil {
		return m.Tests, false, nil
	}
	if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
		return "", false, fmt.Errorf("the mutant does not compile:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name, true, nil
		}
	}
	return "crash of the test binary", true, nil
}
