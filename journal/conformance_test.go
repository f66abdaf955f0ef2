package journal_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/journal/journaltest"
)

func TestMemoryConforms(t *testing.T) {
	journaltest.Run(t, journaltest.Subject{
		New: func(*testing.T) journal.Journal { return journal.NewMemory() },
	})
}

func TestDurableConforms(t *testing.T) {
	journaltest.Run(t, journaltest.Subject{
		New:    newDurable,
		Reopen: reopen,
		Fail:   func(j journal.Journal, fail bool) { j.(located).FailCommits(onFire(fail)) },
	})
}

func TestFailingConforms(t *testing.T) {
	journaltest.Run(t, journaltest.Subject{
		New:  func(*testing.T) journal.Journal { return journaltest.NewFailing(journal.NewMemory()) },
		Fail: func(j journal.Journal, fail bool) { j.(*journaltest.Failing).Fail(onFire(fail)) },
	})
}

func onFire(really bool) error {
	if really {
		return errors.New("the disk is on fire")
	}
	return nil
}

// located remembers where a durable journal of a test lives.
type located struct {
	*journal.Durable
	path string
}

func newDurable(t *testing.T) journal.Journal {
	return openAt(t, filepath.Join(t.TempDir(), "journal.db"))
}

func openAt(t *testing.T, path string) located {
	t.Helper()
	d, err := journal.Open(path, journal.Options{NodeName: "node-1"})
	if err != nil {
		t.Fatal(err)
	}
	return located{d, path}
}

func reopen(t *testing.T, j journal.Journal) journal.Journal {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, j.(located).path)
	if got := again.Recovery(); got.Outcome != journal.OutcomeClean || got.MayHaveLost {
		t.Errorf("a journal that was closed opens as %q, want clean", got)
	}
	return again
}
