package journal

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// copyOf returns the files of a journal, as a backup would take them.
func copyOf(t *testing.T, path string) (log, backup []byte) {
	t.Helper()
	return mustRead(t, path), mustRead(t, path+copySuffix)
}

// A log or a copy that was put back from a backup beside a newer one of the other kind: the
// newer state wins, and what cannot be known to be complete is reported.
func TestRestoredBackup_TheNewerFileWins(t *testing.T) {
	path := onePod(t)
	oldLog, oldCopy := copyOf(t, path)
	d := mustOpen(t, path, Options{CopyEvery: 2})
	for _, uid := range []types.UID{"one", "two", "three"} {
		if err := deferred(d, uid); err != nil {
			t.Fatal(err)
		}
	}
	log, backup := copyOf(t, path) // in use: the copy has two of three
	mustClose(t, d)
	closedLog, closedCopy := copyOf(t, path)
	foreignLog, foreignCopy := copyOf(t, onePod(t))
	for _, story := range []struct {
		name        string
		log, backup []byte
		outcome     Outcome
		lost        bool
		pods        int // kept included
		kept        int // files
	}{
		{"an old copy beside the log", log, oldCopy, OutcomeUnclean, false, 4, 0},
		{"an old copy beside a closed log", closedLog, oldCopy, OutcomeClean, false, 4, 0},
		{"an old log beside the copy of a journal in use", oldLog, backup, OutcomeRestored, true, 3, 1},
		{"an old log beside the copy of a closed journal", oldLog, closedCopy, OutcomeRestored, false, 4, 1},
		{"both are old", oldLog, oldCopy, OutcomeClean, false, 1, 0},
		{"the copy of another journal", log, foreignCopy, OutcomeUnclean, false, 4, 1},
		{"the log of another journal", foreignLog, closedCopy, OutcomeClean, false, 1, 1},
	} {
		path := filepath.Join(t.TempDir(), "journal.db")
		mustWrite(t, path, story.log)
		mustWrite(t, path+copySuffix, story.backup)
		d := mustOpen(t, path, Options{})
		r := d.Recovery()
		if r.Outcome != story.outcome || r.MayHaveLost != story.lost || len(marks(d)) != story.pods || len(r.MovedAside) != story.kept {
			t.Errorf("%s: got %v with %v, want %s, lost %t, %d pods, %d files kept",
				story.name, r, slices.Collect(maps.Keys(marks(d))), story.outcome, story.lost, story.pods, story.kept)
		}
		mustClose(t, d)
	}
}

// The log grows with what is stored and not with what was ever written.
func TestLogSize_IsBoundedByTheState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	d, err := open(path, Options{NodeName: "node-1"}, environment{disk: osDisk{}, formats: currentFormats(), now: time.Now, reserve: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, d)
	var largest int64
	for n := range 300 {
		if err := d.SetFinal("pod", podstatus.Final{Name: strings.Repeat("x", 500), Version: uint64(n)}); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, d.Stats().Bytes)
	}
	if limit := int64(4 * 4096); largest > limit {
		t.Errorf("300 writes of one record of 500 bytes made a file of %d bytes, want at most %d", largest, limit)
	}
}

func TestLargeRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	d := mustOpen(t, path, Options{})
	large := podstatus.Final{Name: strings.Repeat("x", 1<<20), Status: v1.PodStatus{Phase: v1.PodFailed}}
	for _, uid := range []types.UID{"a", "b"} {
		if err := d.SetFinal(uid, large); err != nil {
			t.Fatal(err)
		}
	}
	abandon(t, d)
	d = mustOpen(t, path, Options{})
	defer mustClose(t, d)
	if got := d.Finals(); len(got) != 2 || got["a"].Name != large.Name || got["b"].Name != large.Name {
		t.Errorf("records of 1 MiB are not found again: %v", d.Recovery())
	}
}

// A clock that was set back gives names that are taken.
func TestClockSetBack_KeepsEachDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	env := environment{disk: osDisk{}, formats: currentFormats(), now: func() time.Time { return at }}
	kept := map[string]bool{}
	for _, content := range []string{"first", "second", "third"} {
		mustWrite(t, path, []byte(content))
		d, err := open(path, Options{NodeName: "node-1"}, env)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range d.Recovery().MovedAside {
			kept[string(mustRead(t, name))] = true
		}
		mustClose(t, d)
		if err := os.Remove(path + copySuffix); err != nil {
			t.Fatal(err)
		}
	}
	if !kept["first"] || !kept["second"] || !kept["third"] {
		t.Errorf("damaged files that were kept: %v, want all three", kept)
	}
}
