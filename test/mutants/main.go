// Command mutants shows that the tests of the invariants can fail: it removes the lines that guard
// an invariant, one at a time, and runs the tests that should detect it. A mutant that survives is
// an invariant without a test.
//
//	go run ./test/mutants            all of mutants.txt
//	go run ./test/mutants -only 3    those of invariant 3
//
// All mutants are compiled into the tests at once, and the name of the test's program selects one. The tree is not changed:
// the changed files reach the compiler as an overlay. The tests run first without a mutant: they must pass, and this run's
// duration sets the time limit for the mutants. No process that a test has started outlives it.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/statusd/statusd/test/mutants/mutant"
	"github.com/statusd/statusd/test/progress"
)

//go:embed mutants.txt
var list string

func main() {
	only := flag.String("only", "", "the invariant to look at")
	parallel := flag.Int("p", 2, "how many mutants are tried at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, parallel int) error {
	began := time.Now()
	mutants, err := parse()
	if err != nil {
		return err
	}
	mutants = slices.DeleteFunc(mutants, func(m mutant.Mutant) bool { return only != "" && m.Guards != only })
	if len(mutants) == 0 {
		return fmt.Errorf("no mutant of %q in the list", only)
	}
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{root: strings.TrimSpace(string(top)), dir: dir, mutants: mutants, line: progress.On(os.Stdout)}
	defer l.line.Close()
	if err := l.compile(ctx, parallel); err != nil {
		return err
	}
	survivors := l.tryAll(ctx, parallel)
	l.line.Close()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(l.problems) > 0:
		return errors.Join(l.problems...)
	case survivors > 0:
		return fmt.Errorf("%d of %d mutants survived", survivors, len(mutants))
	}
	fmt.Printf("%d mutants, all found, in %s\n", len(mutants), time.Since(began).Round(time.Second))
	return nil
}

func parse() ([]mutant.Mutant, error) {
	mutants, err := mutant.Parse(list, "invariant", "tests")
	if err != nil {
		return nil, fmt.Errorf("mutants.txt: %w", err)
	}
	return mutants, nil
}

// compile makes the test binaries of all packages with tests of mutants, some at a time.
func (l *lab) compile(ctx context.Context, parallel int) error {
	for _, m := range l.mutants {
		if _, err := m.Apply(l.root); err != nil {
			return fmt.Errorf("%s, without %s: %w", m.Guards, m.Without, err)
		}
	}
	w, err := weaveTree(l.root, l.dir, l.mutants)
	if err != nil {
		return err
	}
	overlay := filepath.Join(l.dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": w.replace})
	if err = errors.Join(err, os.WriteFile(overlay, text, 0o644)); err != nil {
		return err
	}
	var packages []suite
	for _, m := range l.mutants {
		s := suiteOf(m)
		s.tests = ""
		packages = append(packages, s)
	}
	slices.SortFunc(packages, func(a, b suite) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.tags, b.tags)) })
	packages = slices.Compact(packages)
	began := time.Now()
	var compilers sync.WaitGroup
	failed := make([]error, len(packages))
	slots := make(chan struct{}, parallel) // most of the time goes into linking, which keeps one core busy
	for i, s := range packages {
		slots <- struct{}{}
		compilers.Go(func() {
			defer func() { <-slots }()
			l.line.Set("compiling the tests of %s: %d of %d packages, %s", s.in, i+1, len(packages), time.Since(began).Round(time.Second))
			cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags", "-s -w", "-tags", s.tags, "-overlay", overlay, "-o", l.binary(s), "./"+s.in)
			cmd.Dir = l.root
			output, err := cmd.CombinedOutput()
			if err == nil {
				return
			}
			for _, number := range w.blame(string(output)) {
				fmt.Fprintf(l.line, "%-8s %s: does not compile\n", l.mutants[number].Guards, l.mutants[number].Without)
			}
			failed[i] = fmt.Errorf("compile the tests of %s with the mutants: %w\n%s", s.in, err, output)
		})
	}
	compilers.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	fmt.Fprintf(l.line, "compiled the tests of %d packages with %d mutants in %s\n", len(packages), len(l.mutants), time.Since(began).Round(time.Second))
	return nil
}
