package agent

import (
	"io"
	"log/slog"
)

// Logger is a logger as the config wants it. It is made of a valid config.
func (l *LogConfig) Logger(w io.Writer) *slog.Logger {
	level, _ := l.level() // info, if it does not parse
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
