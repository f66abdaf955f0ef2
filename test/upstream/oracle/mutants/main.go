// Command mutants shows that the oracle detects bugs. It breaks a rule of statusd, one at a time,
// and runs random programs until one of them distinguishes the broken statusd from the kubelet. A
// mutant that survives is a rule that the oracle ignores, or never tests.
//
//	cd test/upstream && go run ./oracle/mutants              all of mutants.txt, seed 1
//	cd test/upstream && go run ./oracle/mutants -only X5     those of one rule
//	cd test/upstream && go run ./oracle/mutants -seed 7      with other programs
//
// The tree is not changed: the changed file reaches the compiler as an overlay. Kept programs are
// not run, so that each mutant is found by chance, as a mistake would be.
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/statusd/statusd/test/mutants/mutant"
)

//go:embed mutants.txt
var list string

func main() {
	only := flag.String("only", "", "the rule to look at, such as X5")
	seed := flag.Uint64("seed", 1, "the seed of the programs")
	programs := flag.Uint64("programs", 3000, "how many programs a mutant may survive")
	flag.Parse()
	if err := run(*only, *seed, *programs); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only string, seed, programs uint64) error {
	mutants, err := parse()
	if err != nil {
		return err
	}
	l, err := newLab(seed, programs)
	if err != nil {
		return err
	}
	defer os.RemoveAll(l.dir)
	return mutant.TryAll(mutants, only, func(m mutant.Mutant) (string, bool, error) {
		f, err := l.try(m)
		if f == nil {
			return fmt.Sprintf("%d programs of seed %d", programs, seed), false, err
		}
		return fmt.Sprintf("seed %s, program %s\n%s", f.seed, f.program, f.shortest), true, nil
	})
}

func parse() ([]mutant.Mutant, error) {
	mutants, err := mutant.Parse(list, "kind", "rule")
	if err != nil {
		return nil, fmt.Errorf("mutants.txt: %w", err)
	}
	return mutants, nil
}

// lab is where mutants are compiled and tried.
type lab struct {
	root           string // of the repository
	dir            string // temporary
	seed, programs uint64
}

func newLab(seed, programs uint64) (*lab, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/statusd/statusd").Output()
	if err != nil {
		return nil, fmt.Errorf("find statusd, from within the module test/upstream: %w", err)
	}
	dir, err := os.MkdirTemp("", "oracle-mutants-*")
	if err != nil {
		return nil, err
	}
	return &lab{root: strings.TrimSpace(string(root)), dir: dir, seed: seed, programs: programs}, nil
}

// finding is the program that found a mutant.
type finding struct{ seed, program, shortest string }

// try compiles the oracle with the mutant in place of statusd's code and lets it run. It
// returns nil if no program found it.
func (l *lab) try(m mutant.Mutant) (*finding, error) {
	test, err := l.compile(m)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(test, "-test.run", "^TestOracle$", "-test.timeout", "20m",
		"-seed", fmt.Sprint(l.seed), "-programs", fmt.Sprint(l.programs))
	cmd.Dir = filepath.Join(l.root, "test", "upstream", "oracle")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // one program after the other: the first one is named
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, nil
	}
	f := findingIn(string(out))
	if f == nil {
		return nil, fmt.Errorf("the oracle ended without a finding: %w\n%s", err, out)
	}
	return f, nil
}

// compile returns the path of the oracle's test binary with the mutant in it.
func (l *lab) compile(m mutant.Mutant) (string, error) {
	path := filepath.Join(l.root, m.File)
	source, err := m.Apply(l.root)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(l.dir, "mutated.go")
	overlay := filepath.Join(l.dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	err = errors.Join(err, os.WriteFile(mutated, source, 0o644), os.WriteFile(overlay, replace, 0o644))
	if err != nil {
		return "", err
	}
	test := filepath.Join(l.dir, "oracle.test")
	cmd := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", test, "github.com/statusd/statusd/test/upstream/oracle")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutant does not compile: %w\n%s", err, out)
	}
	return test, nil
}

var (
	foundBy  = regexp.MustCompile(`seed (\d+), program (\d+); run it alone`)
	shortest = regexp.MustCompile(`(?s)The shortest program that shows it:\n(.*?)its trace:`)
)

// findingIn reads what TestOracle prints of a difference.
func findingIn(out string) *finding {
	by, text := foundBy.FindStringSubmatch(out), shortest.FindStringSubmatch(out)
	if by == nil || text == nil {
		return nil
	}
	f := &finding{seed: by[1], program: by[2]}
	for line := range strings.Lines(text[1]) {
		if step := strings.TrimSpace(line); step != "" {
			f.shortest += "    " + step + "\n"
		}
	}
	return f
}
