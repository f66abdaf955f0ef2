// Package broken reads broken workloads, whose files describe the fault, and judges explanations of them.
package broken

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
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Workload is a broken workload: its objects, and what its file says about it before an explanation is read.
type Workload struct {
	Name string
	// Cause and Fix are what a person would say, Asked is where people ask about it.
	Cause, Fix, Asked string
	// Explain is the TYPE/NAME that is explained.
	Explain string
	// First are words that the first clause must have, ToDo words of the advice, Never words that would be wrong. Of a
	// word with " or " one of the parts suffices.
	First, ToDo, Never []string
	// Then is the action on the pod once it is Ready: delete.
	Then    string
	Objects []*unstructured.Unstructured
}

// Corpus reads the files of a directory that say what their cause is.
func Corpus(directory string) (all []Workload, err error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(data, []byte("\n# Cause: ")) && !bytes.HasPrefix(data, []byte("# Cause: ")) {
			continue
		}
		one, err := Read(strings.TrimSuffix(filepath.Base(file), ".yaml"), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// Read reads a workload from its file.
func Read(name string, data []byte) (Workload, error) {
	one := Workload{Name: name}
	words := func(value string) []string { return strings.Split(value, " | ") }
	for line := range strings.Lines(string(data)) {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		key, value, _ := strings.Cut(strings.TrimSpace(comment), ": ")
		switch key {
		case "Cause":
			one.Cause = value
		case "Fix":
			one.Fix = value
		case "Asked":
			one.Asked = value
		case "Explain":
			one.Explain = value
		case "First":
			one.First = words(value)
		case "To do":
			one.ToDo = words(value)
		case "Never":
			one.Never = words(value)
		case "Then":
			one.Then = value
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
		one.Objects = append(one.Objects, object)
	}
	if one.Cause == "" || one.Fix == "" || one.Asked == "" || one.Explain == "" || len(one.First) == 0 || len(one.Objects) == 0 {
		return one, fmt.Errorf("want cause, fix, where it is asked, what is explained, the words of the first clause, and objects")
	}
	return one, nil
}

// Verdict is how well an explanation names a cause.
type Verdict string

// The verdicts.
const (
	Yes    Verdict = "yes"
	Partly Verdict = "partly"
	No     Verdict = "no"
	Wrong  Verdict = "wrong"
)

// Judged is an explanation with its verdict.
type Judged struct {
	Cause Verdict
	// Fix: the advice has the words of the fix.
	Fix bool
	// Length is the length of the explanation without logs, in characters.
	Length int
	Text   string
}

var (
	advice   = regexp.MustCompile(`(?m)(?:\.| ) (?:Next|To do|Note):.*$`)
	behind   = regexp.MustCompile(`(?m) · .*$`)
	headline = regexp.MustCompile(`^\S+ \S+/\S+ `) // the name of the object is not part of the explanation
	doing    = regexp.MustCompile(`(?m)To do: .*$`)
	logsOnly = regexp.MustCompile(`(?ms)^The end of the log .*`)
)

// Judge compares what a program says with what the file of a workload says. The first clause ends where what comes next, what
// is to do, a note, or what follows from the cause begins; an explanation of two causes has two. Words that would be wrong
// count wherever they stand, and so do control characters.
func (w Workload) Judge(said string) Judged {
	j := Judged{Cause: Partly, Text: said}
	text := strings.TrimSpace(logsOnly.ReplaceAllString(said, ""))
	j.Length = len([]rune(text))
	first := headline.ReplaceAllString(behind.ReplaceAllString(advice.ReplaceAllString(text, ""), ""), "")
	switch found := has(first, w.First); {
	case slices.ContainsFunc(w.Never, func(word string) bool { return has(said, []string{word}) == 1 }), strings.ContainsFunc(said, control):
		j.Cause = Wrong
	case found == len(w.First):
		j.Cause = Yes
	case found == 0:
		j.Cause = No
	}
	j.Fix = has(strings.Join(doing.FindAllString(text, -1), "\n"), w.ToDo) == len(w.ToDo)
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
