package journaltest_test

import (
	"testing"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/journal/journaltest"
)

// A journal shows with one test that it keeps what the status manager relies on.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance
		journaltest.Run(t, journaltest.Subject{
			New: func(*testing.T) journal.Journal { return journal.NewMemory() },
		})
	}
}
