package testlog

import (
	"log/slog"
	"testing"
)

// What logs after the end of its test is not heard, and fails no test.
func TestALoggerThatOutlivesItsTest(t *testing.T) {
	var log *slog.Logger
	t.Run("short", func(t *testing.T) {
		log = New(t)
		log.Info("while the test runs")
	})
	log.Info("after its end")
}
