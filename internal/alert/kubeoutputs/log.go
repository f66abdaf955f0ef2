package kubeoutputs

import (
	"context"
	"log/slog"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
)

// Log writes a line for each alert that fires or is over. Make it with [NewLog].
type Log struct{ log *slog.Logger }

// NewLog makes the output to a log.
func NewLog(log *slog.Logger) *Log { return &Log{log} }

// Name is log.
func (*Log) Name() string { return "log" }

// Notify writes a line, unless there was one before a restart.
func (l *Log) Notify(n engine.Notification) {
	defer done(n)
	if n.Again || n.Alert.Silenced != "" {
		return
	}
	level, message := slog.LevelWarn, "alert firing"
	if n.Alert.State == alert.Resolved {
		level, message = slog.LevelInfo, "alert resolved"
	}
	attributes := []any{"rule", n.Alert.Rule, "severity", n.Alert.Severity}
	if n.Alert.Pod != "" {
		attributes = append(attributes, "pod", n.Alert.Namespace+"/"+n.Alert.Pod, "uid", n.Alert.UID)
	}
	if n.Alert.Container != "" {
		attributes = append(attributes, "container", n.Alert.Container)
	}
	l.log.Log(context.Background(), level, message, append(attributes, "summary", n.Alert.Annotations["summary"])...)
}
