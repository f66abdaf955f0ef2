package mutant

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const one = "invariant: 6\nwithout: the cap\nfile: a.go\nfrom: x > 1\nto: false\ntests: TestCap\n"

func TestParseRefusesWhatIsNoMutant(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a comment and a block":  {"# why\n\n" + one, ""},
		"nothing to replace by":  {strings.Replace(one, "false", "", 1), ""},
		"no file":                {strings.Replace(one, "file: a.go\n", "", 1), `no "file"`},
		"no tests":               {strings.Replace(one, "tests: TestCap\n", "", 1), `no "tests"`},
		"an unknown key":         {one + "because: of it\n", "because"},
		"a line without a colon": {one + "and so on\n", "and so on"},
		"no change":              {strings.Replace(one, "false", "x > 1", 1), "changes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			mutants, err := Parse(c.text, "tests")
			switch {
			case c.want == "" && (err != nil || len(mutants) != 1 || mutants[0].Guards != "6"):
				t.Errorf("got %v, %v; want one mutant of invariant 6", mutants, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestApplyReplacesATextThatOccursOnce(t *testing.T) {
	root := t.TempDir()
	m := Mutant{File: "a.go", From: "x > 1", To: "false"}
	for text, want := range map[string]string{"if x > 1 {": "if false {", "if x > 1 || x > 1 {": "", "if y {": ""} {
		if err := os.WriteFile(filepath.Join(root, m.File), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := m.Apply(root); string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q became %q with error %v, want %q", text, got, err, want)
		}
	}
}

func TestASurvivorIsAnError(t *testing.T) {
	mutants := []Mutant{{Guards: "1"}, {Guards: "2"}}
	finds := func(guards string) func(Mutant) (string, bool, error) {
		return func(m Mutant) (string, bool, error) { return "TestIt", m.Guards == guards, nil }
	}
	if err := TryAll(mutants, "", finds("1")); err == nil {
		t.Error("a mutant survived, and there is no error")
	}
	if err := TryAll(mutants, "1", finds("1")); err != nil {
		t.Errorf("all mutants of 1 were found: got %v", err)
	}
	if err := TryAll(mutants, "3", finds("1")); err == nil {
		t.Error("nothing was tried, and there is no error")
	}
	broken := errors.New("does not compile")
	if err := TryAll(mutants, "", func(Mutant) (string, bool, error) { return "", false, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
