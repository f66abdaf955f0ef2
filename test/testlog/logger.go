package testlog

import (
	"io"
	"log/slog"
	"sync"
	"testing"
)

// New returns a logger that writes to the output of a test until the test ends. client-go's managers of
// certificates do not wait for their goroutines, which may log a little longer: such a line must not fail the test.
func New(t testing.TB) *slog.Logger {
	w := &output{to: t.Output()}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, nil))
}

type output struct {
	mu sync.Mutex // guards to
	to io.Writer  // nil: the test has ended
}

// Write implements [io.Writer].
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil {
		return len(data), nil
	}
	return o.to.Write(data)
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = nil
}
