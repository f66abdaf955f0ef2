package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// compare renews the listings in the document and the table that says how much is the
// same, and prints the table.
//
// They stand between the lines "<!-- life NAME -->" or "<!-- table -->" and "<!-- end -->";
// the rest of the document is written by hand and left alone.
func compare(doc string) error {
	lives, err := readLives(nil)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	text, table, happened := string(data), tableHead, eventsHead
	for _, l := range lives {
		name := l.pod.Name
		kubelet, err := readRecording(filepath.Join("recordings", "kubelet", name+".txt"))
		if err != nil {
			return err
		}
		statusd, err := readRecording(filepath.Join("recordings", "statusd", name+".txt"))
		if err != nil {
			return err
		}
		pairs := align(kubelet, statusd)
		if text, err = replaceBlock(text, "life "+name, "```\n"+sideBySide(pairs)+"```\n"); err != nil {
			return fmt.Errorf("%s: %w", doc, err)
		}
		table += tableRow(name, pairs)
		row, err := compareEvents(name)
		if err != nil {
			return err
		}
		happened += row
	}
	fmt.Print(table)
	if text, err = replaceBlock(text, "table", table); err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	if text, err = replaceBlock(text, "events", happened); err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	return os.WriteFile(doc, []byte(text), 0o644)
}

func compareEvents(name string) (string, error) {
	kubelet, err := readEvents(filepath.Join("recordings", "kubelet", name+".events"))
	if err != nil {
		return "", err
	}
	statusd, err := readEvents(filepath.Join("recordings", "statusd", name+".events"))
	if err != nil {
		return "", err
	}
	return eventsRow(name, kubelet, statusd), nil
}

const tableHead = `| pod | the same | same row, other details | kubelet only | statusd only |
|---|---|---|---|---|
`

// tableRow counts how the states of a life compare.
func tableRow(name string, pairs []pair) string {
	var same, alike, onlyKubelet, onlyStatusd int
	for _, p := range pairs {
		switch {
		case p.same():
			same++
		case p.statusd == nil:
			onlyKubelet++
		case p.kubelet == nil:
			onlyStatusd++
		default:
			alike++
		}
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d |\n", name, same, alike, onlyKubelet, onlyStatusd)
}

// replaceBlock puts text into its place in the document.
func replaceBlock(doc, name, text string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(doc, begin)
	if !found {
		return "", fmt.Errorf("there is no line %q", strings.TrimSpace(begin))
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("there is no line %q after %q", strings.TrimSpace(end), strings.TrimSpace(begin))
	}
	return before + begin + text + end + after, nil
}
