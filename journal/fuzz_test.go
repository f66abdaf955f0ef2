package journal

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// Whatever the file has, Open returns the journal or an error; a journal that was opened keeps what it acknowledges.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "journal")
	j, err := Open(path, Options{NodeName: "node"})
	if err != nil {
		f.Fatal(err)
	}
	end := podstatus.Final{Namespace: "ns", Name: "web", Version: 7, Status: v1.PodStatus{Phase: v1.PodFailed}}
	if err := j.SetFinal("a", end); err != nil {
		f.Fatal(err)
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	for _, pattern := range []string{path + "*", "testdata/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path, Options{NodeName: "node"})
		if err != nil {
			return
		}
		before := len(j.Finals())
		if err := j.SetFinal("fuzzed", end); err != nil {
			t.Fatal(err)
		}
		if before = max(before, len(j.Finals())); j.Close() != nil {
			t.Fatal("the journal does not close")
		}
		again, err := Open(path, Options{NodeName: "node"})
		if err != nil {
			t.Fatalf("opened once, and then: %v", err)
		}
		defer again.Close()
		if finals := again.Finals(); len(finals) != before || finals["fuzzed"].Name != end.Name {
			t.Errorf("got %d ends, want %d with the last one", len(finals), before)
		}
	})
}
