package guard

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whatever the state file has, the guard goes on from it.
func FuzzStateFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"state":{},"restarts":[{}],"maintenance":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"version":1,"state":{"signs":{"LeaseStale":{}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := readMemory(path); err == nil {
			m.State.resumed(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		}
	})
}
