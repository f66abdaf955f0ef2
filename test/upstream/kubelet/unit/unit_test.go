package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplanationsAreHeldAgainstOutcomes(t *testing.T) {
	list, err := parseExplained("# a comment\n\nstatus TestInside internals: reads a map\nprober TestOther differs: on purpose\npod TestDisk machine: needs a disk\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pkg  string
		got  outcome
		want string // a part of the problem, empty for none
	}{
		{"status", outcome{"TestA": "pass"}, ""},
		{"status", outcome{"TestInside": "pass"}, "leaves it out"},
		{"prober", outcome{"TestOther": "fail"}, ""},
		{"prober", outcome{"TestOther": "pass"}, "did not fail"},
		{"prober", outcome{"TestOther": "fail", "TestB": "fail"}, "does not say why"},
		{"pod", outcome{"TestDisk": "fail"}, ""},
		{"pod", outcome{"TestDisk": "pass"}, ""},
	} {
		problems := list.judge(c.pkg, c.got)
		if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), c.want)) {
			t.Errorf("%s %v: problems %v, want one with %q", c.pkg, c.got, problems, c.want)
		}
	}
	if _, err := parseExplained("status TestInside because: of this\n"); err == nil {
		t.Error("a line with an unknown kind was read")
	}
	if _, err := parseExplained(explainedText); err != nil {
		t.Error(err)
	}
}

func TestPrepare_LeavesOutTestsAndReplacesHelpers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "status_manager_test.go")
	text := "package status\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n)\n\nfunc verifyUpdates() {}\n\nfunc TestInside(t *testing.T) { fmt.Println() }\n\nfunc TestKept(t *testing.T) {}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := prepareStatus(dir, []string{"TestInside"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got); strings.Contains(s, "verifyUpdates") || strings.Contains(s, "TestInside") || strings.Contains(s, `"fmt"`) || !strings.Contains(s, "TestKept") {
		t.Errorf("the file is\n%s", s)
	}
	if err := prepareStatus(dir, []string{"TestInside"}); err == nil {
		t.Error("a test is left out that does not exist, and nothing is said")
	}
}
