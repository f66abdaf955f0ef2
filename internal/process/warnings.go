package process

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/client-go/rest"
)

// maxWarnings is how many different warnings are logged.
const maxWarnings = 100

// LogWarnings has the warnings of the API server logged, each once: an older server warns of unknown fields with each request.
// A handler that the config has already stays.
func LogWarnings(config *rest.Config, log *slog.Logger) {
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandlerWithContext = &warnings{log: log, logged: map[string]bool{}}
	}
}

// warnings logs each warning once.
type warnings struct {
	log    *slog.Logger
	mu     sync.Mutex // guards logged
	logged map[string]bool
}

func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, message string) {
	if code != 299 || message == "" { // the only code that API servers send
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logged[message] || len(w.logged) == maxWarnings {
		return
	}
	w.logged[message] = true
	w.log.InfoContext(ctx, "API server warns, will not be logged again", "warning", message)
}
