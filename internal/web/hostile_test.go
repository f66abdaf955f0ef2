package web_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What makes HTML or code of strings is not used. The policy forbids it too, but only when it happens.
func TestNoFileMakesHTMLOrCodeOfStrings(t *testing.T) {
	suspicious := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|javascript:|DOMParser|https?://`)
	files := os.DirFS("page")
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(content), "\n") {
			if found := suspicious.FindString(line); found != "" && !strings.Contains(line, "http://www.w3.org/2000/svg") {
				t.Errorf("%s:%d has %s: %s", name, i+1, found, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
