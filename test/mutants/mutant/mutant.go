// Package mutant reads lists of changes that must make a test fail, and tries them one by one.
// A list is a text of blocks, separated by empty lines:
//
//	invariant: 6
//	without: the cap of Retry-After
//	file: status/backoff.go
//	from: case ok && seconds > int(longestPause/time.Second):
//	to: case false && seconds > int(longestPause/time.Second):
//	tests: TestPauses
//
// Lines that begin with # are comments.
package mutant

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Mutant is one change: a text that occurs once in a file, and what replaces it.
type Mutant struct {
	// Guards names what the changed code holds: an invariant or a rule.
	Guards string
	// Kind is the group of the rule, such as merge.
	Kind string
	// Without is what the mutant lacks.
	Without  string
	File     string // relative to the root of the module
	From, To string
	// Tests is a pattern of go test -run.
	Tests string
	// In is the folder of the tests, if it differs from the file's.
	In string
	// Tags are build tags of the tests.
	Tags string
	// With is a command that finds the mutant, in place of go test.
	With string
}

// keys are the fields of a block. "invariant" and "rule" are the same field.
var keys = []string{"invariant", "rule", "kind", "without", "file", "from", "to", "tests", "in", "tags", "with"}

// Parse reads a list. Each block must have the required keys, the removed guard, a file, and a text
// that the change alters.
func Parse(text string, required ...string) ([]Mutant, error) {
	var mutants []Mutant
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(block) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			key, value, ok := strings.Cut(line, ":")
			if !ok || !slices.Contains(keys, key) {
				return nil, fmt.Errorf("%q is not \"key: value\" with one of the keys %q", line, keys)
			}
			fields[key] = strings.TrimSpace(value)
		}
		if len(fields) == 0 {
			continue
		}
		for _, key := range append([]string{"without", "file", "from"}, required...) {
			if fields[key] == "" {
				return nil, fmt.Errorf("a block has no %q:\n%s", key, block)
			}
		}
		if fields["from"] == fields["to"] {
			return nil, fmt.Errorf("a block changes nothing:\n%s", block)
		}
		mutants = append(mutants, Mutant{
			Guards: fields["invariant"] + fields["rule"], Kind: fields["kind"], Without: fields["without"],
			File: fields["file"], From: fields["from"], To: fields["to"], Tests: fields["tests"], In: fields["in"], Tags: fields["tags"], With: fields["with"],
		})
	}
	return mutants, nil
}

// Apply returns the changed text of the file under root. Apply fails unless From occurs exactly
// once there: the list is then out of date.
func (m Mutant) Apply(root string) ([]byte, error) {
	original, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(original, []byte(m.From)); n != 1 {
		return nil, fmt.Errorf("%q occurs %d times in %s, want once: the list is out of date", m.From, n, m.File)
	}
	return bytes.Replace(original, []byte(m.From), []byte(m.To), 1), nil
}

// TryAll tries the mutants that guard only, all of them if it is empty. The function try
// returns what found a mutant, and reports whether anything did. TryAll prints a line for
// each mutant and returns an error if one was not found.
func TryAll(mutants []Mutant, only string, try func(Mutant) (finding string, found bool, err error)) error {
	tried, survivors := 0, 0
	for _, m := range mutants {
		if only != "" && m.Guards != only {
			continue
		}
		finding, found, err := try(m)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", m.Guards, m.Without, err)
		}
		tried++
		if !found {
			survivors++
			finding = "SURVIVED " + finding
		}
		fmt.Printf("%-4s %-58s %s\n", m.Guards, m.Without, finding)
	}
	switch {
	case tried == 0:
		return fmt.Errorf("no mutant of %q in the list", only)
	case survivors > 0:
		return fmt.Errorf("%d of %d mutants survived", survivors, tried)
	}
	fmt.Printf("%d mutants, all found\n", tried)
	return nil
}

// CheckList fails the test if a list is empty, or if the code that a mutant changes has moved on, so that this is noticed without
// a run of all mutants.
func CheckList(t testing.TB, mutants []Mutant, root string) {
	t.Helper()
	if len(mutants) == 0 {
		t.Fatal("mutants.txt lists none")
	}
	for _, m := range mutants {
		if _, err := m.Apply(root); err != nil {
			t.Errorf("%s, without %s: %v", m.Guards, m.Without, err)
		}
	}
}
