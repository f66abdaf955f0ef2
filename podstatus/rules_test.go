package podstatus_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryRuleHasATest keeps docs/reference/pod-status-rules.md and the tests together: each rule that the page
// places in this package is in the name of a test or is told in a story.
func TestEveryRuleHasATest(t *testing.T) {
	told := map[string]bool{}
	testName := regexp.MustCompile(`(?m)^func Test((?:[A-Z]\d+_)+)`)
	for _, file := range append(readAll(t, "*_test.go"), readAll(t, "../internal/podrules/*_test.go")...) {
		for _, match := range testName.FindAllStringSubmatch(file, -1) {
			for rule := range strings.SplitSeq(match[1], "_") {
				told[rule] = true
			}
		}
	}
	ruleName := regexp.MustCompile(`\b[A-Z]\d+\b`)
	for _, file := range readAll(t, "testdata/*.txt") {
		for _, rule := range ruleName.FindAllString(file, -1) {
			told[rule] = true
		}
	}

	row := regexp.MustCompile(`^\| ([A-Z]\d+) \|`)
	listed, manager := 0, false
	for line := range strings.Lines(readAll(t, "../docs/reference/pod-status-rules.md")[0]) {
		if strings.HasPrefix(line, "## ") {
			manager = strings.Contains(line, "*(manager)*")
		}
		match := row.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		listed++
		if !manager && !strings.Contains(line, "*(manager)*") && !told[match[1]] {
			t.Errorf("rule %s of docs/reference/pod-status-rules.md is in no test name and in no story", match[1])
		}
	}
	if listed < 50 {
		t.Errorf("found %d rules in docs/reference/pod-status-rules.md, want all of them: has its form changed?", listed)
	}
}

// readAll returns the contents of the files that match, of which there must be one.
func readAll(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: found no file (error %v)", pattern, err)
	}
	var contents []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(data))
	}
	return contents
}
