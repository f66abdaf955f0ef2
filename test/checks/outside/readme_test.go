package outside

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the numbers of docs/evidence/benchmarks.md into README.md")

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// What README shows as code is the part of an Example between two marks, and so compiles and runs.
func TestReadmeShowsTheExample(t *testing.T) {
	_, rest, found := strings.Cut(read(t, "status/example_test.go"), "\t// README:\n")
	code, _, ended := strings.Cut(rest, "\t// :README\n")
	if !found || !ended {
		t.Fatal("status/example_test.go has no part that is marked for README")
	}
	var want strings.Builder
	for line := range strings.Lines(code) {
		want.WriteString(strings.ReplaceAll(strings.TrimPrefix(line, "\t"), "\t", "    "))
	}
	if !strings.Contains(read(t, "README.md"), "```go\n"+want.String()+"```\n") {
		t.Errorf("README.md does not show the Example of package status; it must be:\n%s", want.String())
	}
}

// row is a row of README's table: | what (`name`) | upstream | **statusd** |
var row = regexp.MustCompile("(?m)^(\\|.*\\(`(\\w+)`\\) \\| )([0-9.,]+)( \\| \\*\\*)([0-9.,]+)(\\*\\* \\|)$")

// The numbers of README are those of docs/evidence/benchmarks.md: go test ./test/checks/outside -run Numbers -rewrite
func TestReadmeHasTheNumbersOfTheBenchmarks(t *testing.T) {
	readme, benchmarks := read(t, "README.md"), read(t, "docs/evidence/benchmarks.md")
	rows := 0
	want := row.ReplaceAllStringFunc(readme, func(line string) string {
		rows++
		parts := row.FindStringSubmatch(line)
		for result := range strings.Lines(benchmarks) {
			cells := strings.Split(result, "|")
			if len(cells) > 5 && strings.TrimSpace(cells[1]) == "`"+parts[2]+"`" {
				return parts[1] + median(cells[5]) + parts[4] + median(cells[4]) + parts[6]
			}
		}
		t.Errorf("docs/evidence/benchmarks.md has no result %s", parts[2])
		return line
	})
	if rows != 5 {
		t.Errorf("README has %d numbers, want 5", rows)
	}
	if *rewrite {
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != readme {
		t.Error("README.md has other numbers than docs/evidence/benchmarks.md: go test ./test/checks/outside -run Numbers -rewrite")
	}
}

// median returns the number of a cell without the quartiles that follow it.
func median(cell string) string {
	number, _, _ := strings.Cut(strings.TrimSpace(cell), " (")
	return number
}
