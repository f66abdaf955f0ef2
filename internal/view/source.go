package view

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/machine/load"
)

// Source is what a node knows. Its methods are called from any goroutine and return quickly; what
// they return is not changed afterwards, by either side.
type Source interface {
	// UIDs returns the pods of the node.
	UIDs() []types.UID
	// Pod returns the facts of a pod, false if the node does not have it.
	Pod(uid types.UID) (Pod, bool)
	// Gone returns the deleted pods whose history is still kept.
	Gone() []PodHistory
	// History returns what happened to the newest pod of a name, false if nothing is known. With an
	// empty name it is the history of the node.
	History(namespace, name string) (PodHistory, bool)
	// Node returns the facts of the node. Pods and History are left empty.
	Node() NodeDetail
	// Watch calls changed for each pod whose facts have changed, and with an empty UID for the node,
	// until ctx ends; first once for all of them, for what changed before it began. It must not wait for
	// changed, which returns at once.
	Watch(ctx context.Context, changed func(types.UID)) error
}

// AuditSource provides the findings of an audit. Its methods are called from any goroutine and return
// quickly; returned values are not changed afterwards. Changes are announced by [Source.Watch]: with
// the UID of the pod, or an empty one for the node and its sides.
type AuditSource interface {
	Report() audit.Report
	// Pictures are what each side says of a pod.
	Pictures(uid types.UID) []audit.Picture
}

// GuardSource is what the guard of a kubelet knows. Changes are announced as changes of the node.
type GuardSource interface {
	Report() guard.Report
}

// LoadSource is how much of its resources the node uses. It is read again and again, so that no change is
// announced.
type LoadSource interface {
	Load() load.Load
}

// AlertSource provides alerts and silences. Its methods are called from any goroutine and return
// quickly. Changes are announced like the changes of an [AuditSource].
type AlertSource interface {
	Alerts() []alert.Alert
	Silences() []alert.Silence
	// Silence stores a silence without ID and Created, and returns it with them. The server has checked
	// it.
	Silence(alert.Silence) (alert.Silence, error)
	// Expire ends a silence. If no silence has this ID the error is [ErrNoSilence].
	Expire(id string) error
}

// ErrNoLog is returned for a run that has no log, or none any more.
var ErrNoLog = errors.New("there is no log")

// LogSource has the logs of containers. Its method is called from any goroutine.
type LogSource interface {
	// Log returns the end of the log of the current or the previous run of a container: up to [MaxLogLines] lines, formatted
	// by [explain.Tail]. If the log does not exist the error is [ErrNoLog].
	Log(ctx context.Context, uid types.UID, container string, previous bool) ([]string, error)
}

// Limits on how much of a log is read.
const (
	MaxLogLines = 200
	MaxLogBytes = 64 << 10
)

// Pod is what a node knows of one pod.
type Pod struct {
	Facts explain.Facts
}

// Sources provide the facts of a node.
type Sources struct {
	// Source is what the node knows. It is required.
	Source Source
	// Audit, Guard, Load, Alerts and Logs are what else is known of the node; nil: it is not.
	Audit  AuditSource
	Guard  GuardSource
	Load   LoadSource
	Alerts AlertSource
	Logs   LogSource
	// Location is the time zone of times in sentences; nil: the machine's.
	Location *time.Location
}
