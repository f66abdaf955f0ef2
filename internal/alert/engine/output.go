package engine

import (
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// Output is where alerts go to. Notify is called on the engine's goroutine: it must not wait and
// cannot fail. Retries, bounds and metrics are the output's own.
type Output interface {
	// Name identifies the output, also after a restart: the engine records which outputs have received
	// an alert.
	Name() string
	// Notify is called when an alert has fired, is still firing (after a restart), or is resolved. If an
	// alert is silenced after it was passed on, Notify is called again with Alert.Silenced set, and without
	// it when the silence ends.
	Notify(Notification)
}

// Notification is an alert that has fired or is over. Its contents do not change afterwards.
type Notification struct {
	Alert alert.Alert
	Rule  *ruleset.Rule // nil if the rule is not in force any more
	At    time.Time
	Node  string
	// Again: the output had the alert before the process was restarted. An output that only reports
	// changes ignores it; an output that mirrors the current state, such as Alertmanager, uses it.
	Again bool
	// Done must be called once the output has delivered the alert, or has dropped it for good. It may
	// be called from any goroutine. If the process ends before Done, the alert is passed on again
	// after the restart, without Again.
	Done func()
}

// Actor does the actions of rules. Act is called on the engine's goroutine and must not wait.
type Actor interface {
	Act(ActionRequest)
}

// ActionRequest requests an action about an alert that has fired.
type ActionRequest struct {
	Alert  alert.Alert
	Rule   *ruleset.Rule
	Action ruleset.Action
	At     time.Time
	Node   string
	// Done stores a result with the alert. It may be called from any goroutine, and more than once: an action that is refused for
	// its budget may be done later.
	Done func(alert.Action)
}
