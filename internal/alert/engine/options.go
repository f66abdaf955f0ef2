package engine

import (
	"cmp"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/internal/view"
)

// Options configure an [Engine]. Source and Set are required.
type Options struct {
	// Source provides the facts of the node. Its Watch announces changes.
	Source view.Source
	// Audit and Guard add drift and the kubelet's health to the facts; nil: they are unknown.
	Audit view.AuditSource
	Guard view.GuardSource
	// Kubelet returns numbers about the kubelet. It must return quickly. Nil: they are those of the Guard's evidence, if
	// it is a [guard.Guard], and else unknown.
	Kubelet func() expr.KubeletFacts
	// Ready is closed once the source knows its pods. No rule is evaluated before: alerts of pods that are not
	// listed yet would be resolved. Nil: the source is ready.
	Ready <-chan struct{}
	// Set is the rules in force; [Engine.Reload] replaces them.
	Set *ruleset.Set
	// Node is the name of the node, a label of each alert.
	Node string
	// StateFile is where alerts and silences survive a restart. Empty: they do not.
	StateFile string
	Outputs   []Output
	// Actor does the actions of rules; nil: no actions.
	Actor Actor
	// Record keeps the result of an action in the history; nil: it is only kept with the alert. It must not wait.
	Record func(alert.Alert, alert.Action)
	// Changed is called with the UID of a pod (empty: the node) whose alerts have changed. It must
	// return at once.
	Changed func(types.UID)
	// MaxAlerts is how many alerts there may be at a time, 10,000 if zero.
	MaxAlerts int
	// Registerer takes the metrics; nil: no metrics.
	Registerer prometheus.Registerer
	Logger     *slog.Logger

	create func(dir, pattern string) (*os.File, error) // of the state file; nil: os.CreateTemp
}

func (o *Options) maxAlerts() int { return cmp.Or(o.MaxAlerts, 10_000) }
