package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// testdata has a journal of each format that is read; that of format 2 was encoded afterwards. A format that is added needs a file,
// and a file is never written again.
func TestFormats_FileOfEach_IsRead(t *testing.T) {
	oldest := currentFormat - len(currentFormats().upgrades)
	for format := oldest; format <= currentFormat; format++ {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			data, err := os.ReadFile(fmt.Sprintf("testdata/format-%d.journal", format))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "journal.db")
			mustWrite(t, path, append(data, make([]byte, 4096)...))
			d := mustOpen(t, path, Options{})
			defer mustClose(t, d)
			upgradedFrom := 0
			if format < currentFormat {
				upgradedFrom = format
			}
			if r := d.Recovery(); r.UpgradedFrom != upgradedFrom || len(r.Damage) > 0 || r.MayHaveLost {
				t.Errorf("got %+v, want upgraded from %d without damage", r, upgradedFrom)
			}
			if got := d.Finals()["pod"]; got.Name != "job" || got.Version != 7 || got.Vanished || got.Status.Phase != "Failed" {
				t.Errorf("the final is %+v", got)
			}
		})
	}
}

// After a downgrade the journal of the newer version is refused as it is, with what to do.
func TestFormats_NewerFile_IsRefusedAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	e := entry{header: header{Format: currentFormat + 1, Node: "node-1", ID: "new", Sequence: 1, Whole: true, Clean: true}}
	data, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, path, data)
	_, err = Open(path, Options{NodeName: "node-1"})
	if !errors.Is(err, ErrNewerFormat) {
		t.Errorf("got %v, want ErrNewerFormat", err)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(data) {
		t.Errorf("the journal has changed (%v)", err)
	}
}
