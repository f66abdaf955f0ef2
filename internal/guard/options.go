package guard

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/internal/history"
)

// Options configure a [Guard]. Kubelet and Collect are required.
type Options struct {
	// Kubelet is the guarded service. Runtime, which may be nil, is restarted if it is down and the policy allows
	// it.
	Kubelet, Runtime Service
	// Collect reads the evidence. It must return within a few seconds, whatever hangs.
	Collect func(ctx context.Context) Evidence
	Policy  Policy
	// Fleet bounds the restarts of the cluster's nodes. Nil: no bound.
	Fleet Fleet
	// Keep keeps evidence before a restart and returns where. Nil: none is kept.
	Keep func(ctx context.Context, c Case) (dir string, err error)
	// Outputs get every [Notice]. They must return at once.
	Outputs []Output
	// StateFile keeps the state over a restart of this program. Empty: the state is lost.
	StateFile string
	// Every is the time between two looks; 3 s if 0.
	Every time.Duration
	// RestartTimeout is how long a restart may take; 3 minutes if 0.
	RestartTimeout time.Duration
	// Record adds to the history of the node; nil: nothing is recorded.
	Record func(history.Record)
	// Changed is called when the report has changed in more than its times; nil: it is not called.
	Changed func()
	// Registerer gets the metrics; nil: no metrics.
	Registerer prometheus.Registerer
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Case is the set of facts when evidence is kept.
type Case struct {
	At       time.Time `json:"at"`
	Target   Target    `json:"target"`
	Reason   string    `json:"reason"`
	Report   Report    `json:"report"`
	Evidence Evidence  `json:"evidence"`
}

// NoticeKind is the kind of event of a notice.
type NoticeKind string

// The kinds of notices. They are the reasons of Events too.
const (
	NoticeUnhealthy  NoticeKind = "KubeletUnhealthy"
	NoticeHealthy    NoticeKind = "KubeletHealthy"
	NoticeRestarted  NoticeKind = "KubeletRestarted"
	NoticeSuppressed NoticeKind = "KubeletRestartSuppressed"
	// NoticeReport: nothing but the report has changed.
	NoticeReport NoticeKind = "Report"
)

// Notice is an event for outputs, with the report at the time of the event.
type Notice struct {
	Kind    NoticeKind
	At      time.Time
	Message string
	Report  Report
}

// Output brings notices to a place: the API, a webhook. Its retries and bounds are its own.
type Output interface {
	// Notify returns at once.
	Notify(n Notice)
}
