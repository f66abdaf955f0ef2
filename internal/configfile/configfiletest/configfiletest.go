// Package configfiletest checks what the config file of each process must keep: its default file is the default, and its page has
// the settings of that file. The flag -rewrite writes the page.
package configfiletest

import (
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/statusd/statusd/internal/configfile"
)

var rewrite = flag.Bool("rewrite", false, "write the table of settings as it is now")

// DefaultFileIsTheDefault checks that the default file can be loaded and is the default config. That the file has each field of the
// config, with a comment, is checked when it is read.
func DefaultFileIsTheDefault[C any](t *testing.T, file *configfile.File[C], load func(path string, data []byte) (C, error)) {
	t.Helper()
	c, err := load("default", []byte(file.Text()))
	if err != nil {
		t.Fatalf("the default file cannot be read: %v\n%s", err, file.Text())
	}
	if want := file.Default(); !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
}

// PageHasTheSettings checks that a page has each setting as the default file has it.
func PageHasTheSettings[C any](t *testing.T, file *configfile.File[C], page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := file.Page(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s is not as the default file is; run with -rewrite", page)
	}
}
