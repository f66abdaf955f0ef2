package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestARecordIsReplacedAsAWhole(t *testing.T) {
	dir := Dir(t.TempDir())
	for _, write := range []func(string, any) error{Write, WriteDurably} {
		for _, message := range []string{strings.Repeat("long", 1000), "short"} {
			want := Exit{ExitCode: 3, Message: message, FinishedAt: time.Now().UTC().Round(0)}
			if err := write(dir.Exit(), want); err != nil {
				t.Fatal(err)
			}
			var got Exit
			if err := Read(dir.Exit(), &got); err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		}
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v; want one file and nothing temporary", entries, err)
	}
}

func TestAFailedWriteLeavesTheOldRecordAndNothingElse(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := Write(dir.Stop(), Stop{Grace: 1}); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir.Stop(), func() {}); err == nil {
		t.Error("a value that is no JSON: got no error")
	}
	if err := os.Mkdir(dir.Exit(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir.Exit(), Exit{}); err == nil {
		t.Error("a directory in the way: got no error")
	}
	var stop Stop
	if err := Read(dir.Stop(), &stop); err != nil || stop.Grace != 1 {
		t.Errorf("got %+v, %v; want the old record", stop, err)
	}
	if entries, err := os.ReadDir(string(dir)); err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v; want the record and the directory", entries, err)
	}
}

func TestMissingAndDamagedAreDifferent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	var value Stop
	if err := Read(path, &value); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: got %v, want fs.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Read(path, &value); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("damaged: got %v, want an error that names the file", err)
	}
}

func TestTemporaryFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{tempPrefix + "1", tempPrefix + "2", "spec.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTemps(dir); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "spec.json" {
		t.Errorf("got %v, %v; want spec.json only", entries, err)
	}
}
