package process

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
)

// LogConfig is about statusd's own log.
type LogConfig struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

// Logger is a logger as the config has it. It is made of a valid config.
func (l *LogConfig) Logger(w io.Writer) *slog.Logger {
	level, _ := l.level() // info, if it does not parse
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func (l *LogConfig) level() (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(l.Level))
	return level, err
}

// Validate names each field that is wrong.
func (l *LogConfig) Validate(wrong Wrong) {
	if !slices.Contains([]string{"text", "json"}, l.Format) {
		wrong("log.format", "%q: want text or json", l.Format)
	}
	if _, err := l.level(); err != nil {
		wrong("log.level", "%q: want debug, info, warn or error", l.Level)
	}
}

// Wrong reports a problem of a field of a config, by its path in the file.
type Wrong func(path, format string, args ...any)

// Problems collects the problems of a config: the function adds to the slice.
func Problems() (Wrong, *[]error) {
	problems := &[]error{}
	return func(path, format string, args ...any) {
		*problems = append(*problems, fmt.Errorf("config: %s: %s", path, fmt.Sprintf(format, args...)))
	}, problems
}
