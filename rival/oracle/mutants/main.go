// Command mutants shows that the oracle can see. It breaks a rule of statusd, one at a time,
// and runs random programs until one of them tells the broken statusd from the kubelet. A
// mutant that survives is a rule that the oracle forgives, or never puts to the test.
//
//	cd rival && go run ./oracle/mutants              all of mutants.txt, seed 1
//	cd rival && go run ./oracle/mutants -only X5     those of one rule
//	cd rival && go run ./oracle/mutants -seed 7      with other programs
//
// The tree is left alone: the changed file reaches the compiler as an overlay. Kept programs
// are not run, so that each mutant is found by chance, as a mistake would be.
package main

import (
	"bytes"
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
	mutants, err := parse(list)
	if err != nil {
		return err
	}
	l, err := newLab(seed, programs)
	if err != nil {
		return err
	}
	defer os.RemoveAll(l.dir)
	tried, survivors := 0, 0
	for _, m := range mutants {
		if only != "" && m.rule != only {
			continue
		}
		f, err := l.try(m)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", m.rule, m.without, err)
		}
		tried++
		if f == nil {
			survivors++
			fmt.Printf("%-11s %-4s without %s: SURVIVED %d programs of seed %d\n\n", m.kind, m.rule, m.without, programs, seed)
			continue
		}
		fmt.Printf("%-11s %-4s without %s: seed %s, program %s\n%s\n", m.kind, m.rule, m.without, f.seed, f.program, f.shortest)
	}
	switch {
	case tried == 0:
		return fmt.Errorf("no mutant of rule %q in mutants.txt", only)
	case survivors > 0:
		return fmt.Errorf("%d of %d mutants survived", survivors, tried)
	}
	fmt.Printf("%d mutants, all found\n", tried)
	return nil
}

// mutant is a change to statusd that the oracle must notice.
type mutant struct {
	kind     string // of rule: merge, equality, ...
	rule     string
	without  string
	file     string // under the root of the repository
	from, to string
}

// parse reads blocks of lines "key: value", separated by empty lines.
func parse(text string) ([]mutant, error) {
	var mutants []mutant
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		fields := make(map[string]string)
		for line := range strings.SplitSeq(block, "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			key, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("mutants.txt: %q is not \"key: value\"", line)
			}
			fields[key] = strings.TrimSpace(value)
		}
		if len(fields) == 0 {
			continue
		}
		m := mutant{kind: fields["kind"], rule: fields["rule"], without: fields["without"],
			file: fields["file"], from: fields["from"], to: fields["to"]}
		if m.kind == "" || m.rule == "" || m.without == "" || m.file == "" || m.from == "" || m.from == m.to {
			return nil, fmt.Errorf("mutants.txt: a block lacks a field, or changes nothing:\n%s", block)
		}
		mutants = append(mutants, m)
	}
	return mutants, nil
}

// apply returns the file's text with the mutant in it.
func (m mutant) apply(path string) ([]byte, error) {
	original, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(original, []byte(m.from)); n != 1 {
		return nil, fmt.Errorf("%q stands %d times in %s, want once: mutants.txt is out of date", m.from, n, m.file)
	}
	return bytes.Replace(original, []byte(m.from), []byte(m.to), 1), nil
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
		return nil, fmt.Errorf("find statusd, from within the module rival: %w", err)
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
func (l *lab) try(m mutant) (*finding, error) {
	test, err := l.compile(m)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(test, "-test.run", "^TestOracle$", "-test.timeout", "20m",
		"-seed", fmt.Sprint(l.seed), "-programs", fmt.Sprint(l.programs))
	cmd.Dir = filepath.Join(l.root, "rival", "oracle")
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
func (l *lab) compile(m mutant) (string, error) {
	path := filepath.Join(l.root, m.file)
	source, err := m.apply(path)
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
	cmd := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", test, "github.com/statusd/statusd/rival/oracle")
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
