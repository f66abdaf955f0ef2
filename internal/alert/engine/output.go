package engine

import (
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/ruleset"
)

// Output is where alerts go to. Notify is called on the engine's goroutine: it must not wait and
// cannot fail. Retries, bounds and metrics are the output's own.
type Output interface {
	// Name is the same after a restart: it is how the engine knows which outputs have got an alert.
	Name() string
	// Notify passes on that an alert has fired, is still firing (after a restart), or is resolved. One that
	// was passed on and is silenced now is passed on again with Alert.Silenced set, and without it when the
	// silence ends.
	Notify(Notification)
}

// Notification is an alert that has fired or is over. What it refers to is not changed afterwards.
type Notification struct {
	Alert alert.Alert
	Rule  *ruleset.Rule // nil if the rule is not in force any more
	At    time.Time
	Node  string
	// Again: the output had it before the process was restarted. An output that only reports news
	// ignores it; one that must keep what is true up to date, as Alertmanager, takes it.
	Again bool
	// Done must be called once the output has delivered the alert, or has dropped it for good. It may
	// be called from any goroutine. What was not done when the process ended is passed on again after
	// the restart, without Again.
	Done func()
}

// Actor does what rules allow. Act is called on the engine's goroutine and must not wait.
type Actor interface {
	Act(ActionRequest)
}

// ActionRequest asks for an action about an alert that has fired.
type ActionRequest struct {
	Alert  alert.Alert
	Rule   *ruleset.Rule
	Action ruleset.Action
	At     time.Time
	Node   string
	// Done stores a result with the alert. It may be called from any goroutine, with each result: one that is refused for its budget
	// may be done later.
	Done func(alert.Action)
}
