package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// compare updates and prints the document's table, which counts the equal states of each life.
//
// The table stands between a line "<!-- table -->", or with the name of another block, and "<!-- end -->"; the rest of the document is written by hand and not
// changed.
func compare(with, doc, block string) error {
	lives, err := readLives(nil)
	if err != nil {
		return err
	}
	table := strings.ReplaceAll(tableHead, "statusd", with)
	for _, l := range lives {
		pairs, err := comparePod(l.pod.Name, with)
		if err != nil {
			return err
		}
		events, err := compareEvents(l.pod.Name, with)
		if err != nil {
			return err
		}
		table += tableRow(l.pod.Name, pairs) + events
	}
	fmt.Print(table)
	data, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	text, err := replaceBlock(string(data), block, table)
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	return os.WriteFile(doc, []byte(text), 0o644)
}

// list prints the lives of some pods, the kubelet's and the other agent's side by side.
func list(with string, names []string) error {
	lives, err := readLives(names)
	if err != nil {
		return err
	}
	for _, l := range lives {
		pairs, err := comparePod(l.pod.Name, with)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n%s\n", l.pod.Name, sideBySide(pairs))
	}
	return nil
}

func comparePod(name, with string) ([]pair, error) {
	kubelet, err := readRecording(filepath.Join("recordings", "kubelet", name+".txt"))
	if err != nil {
		return nil, err
	}
	statusd, err := readRecording(filepath.Join("recordings", with, name+".txt"))
	if err != nil {
		return nil, err
	}
	return align(kubelet, statusd), nil
}

func compareEvents(name, with string) (string, error) {
	kubelet, err := readEvents(filepath.Join("recordings", "kubelet", name+".events"))
	if err != nil {
		return "", err
	}
	statusd, err := readEvents(filepath.Join("recordings", with, name+".events"))
	if err != nil {
		return "", err
	}
	return eventCells(kubelet, statusd), nil
}

const tableHead = `| pod | the same | same row, other details | kubelet only | statusd only | events of both | kubelet only | statusd only |
|---|---|---|---|---|---|---|---|
`

// tableRow counts how the states of a life compare; the cells of its events follow.
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
	return fmt.Sprintf("| %s | %d | %d | %d | %d |", name, same, alike, onlyKubelet, onlyStatusd)
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
