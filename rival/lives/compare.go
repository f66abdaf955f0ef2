package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// compare renews the listings in the document, and prints how much is the same.
//
// A listing stands between the lines "<!-- life NAME -->" and "<!-- end -->"; the rest of
// the document is written by hand and left alone.
func compare(doc string) error {
	lives, err := readLives(nil)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	text := string(data)
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
		if text, err = replaceListing(text, name, sideBySide(pairs)); err != nil {
			return fmt.Errorf("%s: %w", doc, err)
		}
		fmt.Printf("%-12s %s\n", name, count(pairs))
	}
	return os.WriteFile(doc, []byte(text), 0o644)
}

// count says in one line how the pairs of a life compare.
func count(pairs []pair) string {
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
	return fmt.Sprintf("%d same, %d differ in details, %d of the kubelet only, %d of statusd only", same, alike, onlyKubelet, onlyStatusd)
}

// replaceListing puts a listing into its place in the document.
func replaceListing(doc, name, listing string) (string, error) {
	begin, end := "<!-- life "+name+" -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(doc, begin)
	if !found {
		return "", fmt.Errorf("there is no line %q", strings.TrimSpace(begin))
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("there is no line %q after %q", strings.TrimSpace(end), strings.TrimSpace(begin))
	}
	return before + begin + "```\n" + listing + "```\n" + end + after, nil
}
