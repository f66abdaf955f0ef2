// Command mutants shows that the tests of the invariants can fail: it takes out the line that
// guards an invariant, one at a time in a copy of the tree, and runs the tests that are said to
// hold it. A mutant that survives is an invariant without a test.
//
//	go run ./internal/mutants            all of mutants.txt
//	go run ./internal/mutants -only 3    those of invariant 3
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed mutants.txt
var list string

// mutant is a change that must make a test fail.
type mutant struct {
	invariant string
	why       string
	file      string
	from, to  string
	tests     string // -run pattern
}

func main() {
	only := flag.String("only", "", "the invariant to look at")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	mutants, err := parse(list)
	if err != nil {
		return err
	}
	tree, err := copyTree()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	survivors := 0
	for _, m := range mutants {
		if only != "" && m.invariant != only {
			continue
		}
		killer, err := m.try(tree)
		if err != nil {
			return fmt.Errorf("invariant %s, %s: %w", m.invariant, m.why, err)
		}
		if killer == "" {
			survivors++
			killer = "SURVIVED " + m.tests
		}
		fmt.Printf("%-3s %-58s %s\n", m.invariant, m.why, killer)
	}
	if survivors > 0 {
		return fmt.Errorf("%d mutants survived", survivors)
	}
	return nil
}

// parse reads blocks of lines "key: value", separated by empty lines.
func parse(text string) ([]mutant, error) {
	var mutants []mutant
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		fields := map[string]string{}
		for line := range strings.SplitSeq(block, "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			key, value, ok := strings.Cut(line, ": ")
			if !ok {
				return nil, fmt.Errorf("mutants.txt: %q is not \"key: value\"", line)
			}
			fields[key] = value
		}
		if len(fields) == 0 {
			continue
		}
		m := mutant{invariant: fields["invariant"], why: fields["without"], file: fields["file"],
			from: fields["from"], to: fields["to"], tests: fields["tests"]}
		if m.invariant == "" || m.why == "" || m.file == "" || m.from == "" || m.tests == "" {
			return nil, fmt.Errorf("mutants.txt: a block lacks a field:\n%s", block)
		}
		mutants = append(mutants, m)
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
	script := `cd "$1" && git ls-files -z -- '*.go' go.mod go.sum 'status/testdata' 'podstatus/testdata' | tar --null -T - -cf - | tar -xf - -C "$2"`
	if out, err := exec.Command("sh", "-c", script, "sh", strings.TrimSpace(string(top)), dir).CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("copy the tree: %w: %s", err, out)
	}
	return dir, nil
}

// try applies the mutant, runs its tests, takes it back, and returns the test that failed.
func (m mutant) try(tree string) (killer string, err error) {
	path := filepath.Join(tree, m.file)
	original, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if bytes.Count(original, []byte(m.from)) != 1 {
		return "", fmt.Errorf("%q stands %d times in %s, want once: mutants.txt is out of date", m.from, bytes.Count(original, []byte(m.from)), m.file)
	}
	if err := os.WriteFile(path, bytes.Replace(original, []byte(m.from), []byte(m.to), 1), 0o644); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, original, 0o644)) }()
	cmd := exec.Command("go", "test", "-timeout", "5m", "-run", m.tests, "./"+filepath.Dir(m.file))
	cmd.Dir = tree
	out, testErr := cmd.CombinedOutput()
	if testErr == nil {
		return "", nil
	}
	if bytes.Contains(out, []byte("[build failed]")) {
		return "", fmt.Errorf("the mutant does not compile:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name, nil
		}
	}
	return "crash of the test binary", nil
}
