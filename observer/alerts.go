package observer

import (
	"fmt"

	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/observe"
	"github.com/statusd/statusd/rules"
	"github.com/statusd/statusd/rules/alerting"
)

// readOnlyRules are no rules, and no output that writes to the API unless the operator says so.
func readOnlyRules() alerting.Config {
	c := alerting.Default()
	c.Events, c.Conditions = false, false
	return c
}

// wireAlerts makes what evaluates rules, if there are any.
func (o *Observer) wireAlerts() (err error) {
	if !o.config.Rules.Enabled() {
		return nil
	}
	process := alerting.Process{
		Source: answers{o}, Audit: answers{o}, Guard: o.guardSource(), Ready: o.known, Node: o.node, StateDir: o.config.StateDir,
		Client: o.client, Record: o.recordAction, Changed: o.listeners.Announce,
		Why: map[rules.ActionKind]string{
			rules.ActionRestartContainer: "beside a kubelet a container is not restarted: the kubelet would take it for one that crashed",
			rules.ActionRestartKubelet:   "the guard is off: set guard.enabled",
		},
		Registerer: o.registerer, Logger: o.log,
	}
	if o.sendsAlerts() {
		process.Event = o.events.sender.Take
	}
	if o.guard != nil {
		process.RestartKubelet = o.guard.Restart
	}
	if path := o.config.Rules.ActionsKubeconfig; path != "" {
		config, err := daemon.LoadKubeconfig(path)
		if err != nil {
			return fmt.Errorf("rules.actionsKubeconfig: %w", err)
		}
		if process.ActionsClient, err = kubernetes.NewForConfig(config); err != nil {
			return fmt.Errorf("rules.actionsKubeconfig: %w", err)
		}
	}
	o.alerts, err = alerting.New(o.config.Rules, process)
	return err
}

// sendsAlerts reports whether there are events of alerts: each action is one.
func (o *Observer) sendsAlerts() bool {
	return o.config.Rules.Enabled() && (o.config.Rules.Events || len(o.config.Rules.Actions) > 0)
}

// alertSource is what the rules have found, nil if there are none.
func (o *Observer) alertSource() api.AlertSource {
	if o.alerts == nil {
		return nil
	}
	return o.alerts
}

// noteKnown lets rules be evaluated once the API has shown its pods: one that is not known yet is not gone. It
// is called by the goroutine that audits.
func (o *Observer) noteKnown(v *view) {
	if answer := v.report.Sides[observe.SideAPI]; !answer.Known() {
		return
	}
	select {
	case <-o.known:
	default:
		close(o.known)
	}
}

// recordAction keeps in the history what was done about an alert.
func (o *Observer) recordAction(alert api.Alert, action api.AlertAction) {
	o.history.Add(alerting.Recorded(alert, action))
	o.listeners.Announce(alert.UID)
}
