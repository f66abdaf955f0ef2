package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ill is a broken workload of examples/broken: its objects, and what its file says about it before an explanation is read.
type ill struct {
	name string
	// cause and fix are what a person would say, asked where people ask about it.
	cause, fix, asked string
	// explain is the TYPE/NAME that is explained.
	explain string
	// first are the words that the first clause must have, todo those of the advice, never those that would be wrong. Of a
	// word with " or " one of the parts suffices.
	first, todo, never []string
	// then is what is done to the pod once it is Ready: delete.
	then    string
	objects []*unstructured.Unstructured
}

// readCorpus reads the files of examples/broken that say what their cause is.
func readCorpus(t *testing.T) (all []ill) {
	t.Helper()
	files, err := filepath.Glob("../../examples/broken/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data, []byte("\n# Cause: ")) && !bytes.HasPrefix(data, []byte("# Cause: ")) {
			continue
		}
		one, err := readIll(strings.TrimSuffix(filepath.Base(file), ".yaml"), data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		all = append(all, one)
	}
	return all
}

func readIll(name string, data []byte) (ill, error) {
	one := ill{name: name}
	words := func(value string) []string { return strings.Split(value, " | ") }
	for line := range strings.Lines(string(data)) {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		key, value, _ := strings.Cut(strings.TrimSpace(comment), ": ")
		switch key {
		case "Cause":
			one.cause = value
		case "Fix":
			one.fix = value
		case "Asked":
			one.asked = value
		case "Explain":
			one.explain = value
		case "First":
			one.first = words(value)
		case "To do":
			one.todo = words(value)
		case "Never":
			one.never = words(value)
		case "Then":
			one.then = value
		}
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return one, err
		}
		one.objects = append(one.objects, object)
	}
	if one.cause == "" || one.fix == "" || one.asked == "" || one.explain == "" || len(one.first) == 0 || len(one.objects) == 0 {
		return one, fmt.Errorf("want cause, fix, where it is asked, what is explained, the words of the first clause, and objects")
	}
	return one, nil
}

// verdict is how well an explanation names a cause.
type verdict string

const (
	verdictYes    verdict = "yes"
	verdictPartly verdict = "partly"
	verdictNo     verdict = "no"
	verdictWrong  verdict = "wrong"
)

// judged is an explanation with its verdict.
type judged struct {
	cause verdict
	// fix: the advice has the words of the fix.
	fix bool
	// length is that of the explanation without logs, in characters.
	length int
	text   string
}

var (
	advice   = regexp.MustCompile(`(?m)(?:\.| ) (?:Next|To do|Note):.*$`)
	behind   = regexp.MustCompile(`(?m) · .*$`)
	headline = regexp.MustCompile(`^\S+ \S+/\S+ `) // the name of an object is not what is said about it
	doing    = regexp.MustCompile(`(?m)To do: .*$`)
	logsOnly = regexp.MustCompile(`(?ms)^The end of the log .*`)
)

// judge compares what a program says with what the file of a workload says. The first clause ends where what comes next, what
// is to do, a note, or what follows from the cause begins; an explanation of two causes has two. Words that would be wrong
// count wherever they stand, and so do control characters.
func (i ill) judge(said string) judged {
	j := judged{cause: verdictPartly, text: said}
	text := strings.TrimSpace(logsOnly.ReplaceAllString(said, ""))
	j.length = len([]rune(text))
	first := headline.ReplaceAllString(behind.ReplaceAllString(advice.ReplaceAllString(text, ""), ""), "")
	switch found := has(first, i.first); {
	case slices.ContainsFunc(i.never, func(word string) bool { return has(said, []string{word}) == 1 }), strings.ContainsFunc(said, control):
		j.cause = verdictWrong
	case found == len(i.first):
		j.cause = verdictYes
	case found == 0:
		j.cause = verdictNo
	}
	j.fix = has(strings.Join(doing.FindAllString(text, -1), "\n"), i.todo) == len(i.todo)
	return j
}

func control(r rune) bool { return r != '\n' && unicode.IsControl(r) }

// has is how many of the words a text has.
func has(text string, words []string) (count int) {
	text = strings.ToLower(text)
	for _, word := range words {
		if slices.ContainsFunc(strings.Split(strings.ToLower(word), " or "), func(one string) bool { return strings.Contains(text, one) }) {
			count++
		}
	}
	return count
}

// Each broken workload says what is wrong with it, where people ask about it, and by which words an explanation is judged.
func TestCorpus_IsComplete(t *testing.T) {
	corpus := readCorpus(t)
	if len(corpus) < 80 {
		t.Errorf("%d broken workloads, want at least 80", len(corpus))
	}
	for _, one := range corpus {
		_, name, _ := strings.Cut(one.explain, "/")
		if main := one.objects[len(one.objects)-1]; main.GetName() != name || name != one.name {
			t.Errorf("%s: explains %s, and its last object is %s", one.name, one.explain, main.GetName())
		}
	}
}

func TestJudge(t *testing.T) {
	one := ill{first: []string{"no such table", "exit code 3 or code 3"}, todo: []string{"table"}, never: []string{"asked it to stop"}}
	for _, test := range []struct {
		said string
		want verdict
		fix  bool
	}{
		{"Pod d/p is not Ready, because container \"db\" is not ready: exit code 3: no such table · 4 restarts. To do: create the table (kubectl logs).", verdictYes, true},
		{"Pod d/p is not Ready, because it fails: exit code 3 · 4 restarts. To do: read the log.", verdictPartly, false},
		{"Pod d/p is not Ready, because it waits · exit code 3: no such table. To do: no such table.", verdictNo, true},
		{"Pod d/p is not Ready, because it waits. Next: exit code 3: no such table.", verdictNo, false},
		{"Pod d/p is not Ready.\n\n- Exit code 3: no such table.\n  To do: create the table.\n\n- Readiness.", verdictYes, true},
		{"Pod d/p is not Ready, because exit code 3: no such table. To do: find what asked it to stop.", verdictWrong, false},
		{"exit code 3: no such table \x1b[2J", verdictWrong, false},
		{"Pod d/p waits.\n\nThe end of the log of container \"db\":\n  | exit code 3: no such table", verdictNo, false},
	} {
		if got := one.judge(test.said); got.cause != test.want || got.fix != test.fix {
			t.Errorf("%q is %s (fix %t), want %s (fix %t)", test.said, got.cause, got.fix, test.want, test.fix)
		}
	}
}
