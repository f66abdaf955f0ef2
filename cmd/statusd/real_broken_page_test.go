//go:build real

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const brokenPage = "../../docs/evidence/broken-pods.md"

// transcript is what three tools say about one pod: a file of testdata/broken.
type transcript struct{ sentence, describe, k8sgpt string }

const (
	transcriptSentence = "== statusd explain\n"
	transcriptDescribe = "\n\n== kubectl describe\n"
	transcriptK8sgpt   = "\n\n== k8sgpt\n"
)

func transcriptFile(pod string) string { return filepath.Join("testdata", "broken", pod+".txt") }

func readTranscript(t *testing.T, pod string) (s transcript) {
	t.Helper()
	data, err := os.ReadFile(transcriptFile(pod))
	if err != nil {
		t.Fatal(err)
	}
	sentence, rest, hasDescribe := strings.Cut(strings.TrimPrefix(string(data), transcriptSentence), transcriptDescribe)
	describe, k8sgpt, hasK8sgpt := strings.Cut(rest, transcriptK8sgpt)
	if !hasDescribe || !hasK8sgpt {
		t.Fatalf("%s does not have its three parts", transcriptFile(pod))
	}
	return transcript{sentence, describe, strings.TrimSpace(k8sgpt)}
}

func (s transcript) write(t *testing.T, pod string) {
	t.Helper()
	writeFile(t, transcriptFile(pod), transcriptSentence+s.sentence+transcriptDescribe+s.describe+transcriptK8sgpt+strings.TrimSpace(s.k8sgpt)+"\n")
}

// The page of broken pods has the sentences of the recorded files; with -record it gets them.
func TestPageOfBrokenPodsHasTheTranscripts(t *testing.T) {
	if *record {
		writeBrokenPage(t)
	}
	text, table := brokenPageAndTable(t)
	if !strings.Contains(text, table) {
		t.Errorf("%s has another table than testdata/broken; it must be:\n%s", brokenPage, table)
	}
}

func writeBrokenPage(t *testing.T) {
	t.Helper()
	text, table := brokenPageAndTable(t)
	before, rest, _ := strings.Cut(text, brokenTableHead)
	for strings.HasPrefix(rest, "|") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	writeFile(t, brokenPage, before+table+rest)
}

const brokenTableHead = "| pod | statusd explain | k8sgpt |\n|---|---|---|\n"

// brokenPageAndTable returns the page as it is, and the table as it must be.
func brokenPageAndTable(t *testing.T) (text, table string) {
	t.Helper()
	data, err := os.ReadFile(brokenPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := brokenTableHead
	cell := strings.NewReplacer("|", "\\|", "<", "&lt;")
	for _, b := range brokenPods {
		name := strings.TrimSuffix(filepath.Base(b.file), ".yaml")
		s := readTranscript(t, name)
		sentence, _, _ := strings.Cut(s.sentence, "\n") // the end of the log is in the transcript
		rows += "| [" + name + "](../../examples/" + b.file + ") ([transcript](../../cmd/statusd/" + filepath.ToSlash(transcriptFile(name)) + ")) | " +
			cell.Replace(sentence) + " | " + cell.Replace(s.k8sgpt) + " |\n"
	}
	return string(data), rows
}
