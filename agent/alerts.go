package agent

import (
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/internal/daemon"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/rules"
	"github.com/statusd/statusd/rules/alerting"
)

// wireAlerts makes what evaluates rules, if there are any.
func (a *Agent) wireAlerts() (err error) {
	if !a.config.Rules.Enabled() {
		return nil
	}
	process := alerting.Process{
		Source: answers{a}, Guard: a.guardSource(), Ready: a.dispatcher.allListed, Node: a.nodeName, StateDir: a.config.StateDir,
		Event: a.events.Take, Record: a.recordAction, Changed: a.changes.Announce, RestartContainer: a.restartContainer,
		Why:        map[rules.ActionKind]string{rules.ActionRestartKubelet: "statusd is the kubelet of this node"},
		Registerer: a.registerer, Logger: a.log,
	}
	if a.client != nil {
		process.Client, process.OwnsNode = a.client, true
	}
	if path := a.config.Rules.ActionsKubeconfig; path != "" {
		config, err := daemon.LoadKubeconfig(path)
		if err != nil {
			return fmt.Errorf("agent: rules.actionsKubeconfig: %w", err)
		}
		if process.ActionsClient, err = kubernetes.NewForConfig(config); err != nil {
			return fmt.Errorf("agent: rules.actionsKubeconfig: %w", err)
		}
	}
	if a.alerts, err = alerting.New(a.config.Rules, process); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// recordAction keeps in the history what was done about an alert.
func (a *Agent) recordAction(alert api.Alert, action api.AlertAction) {
	a.history.Add(alerting.Recorded(alert, action))
	a.changes.Announce(alert.UID)
}

var errNotRunning = errors.New("the container is not running")

// restartContainer restarts the container of an alert: the run of it that the status shows.
func (a *Agent) restartContainer(r *rules.ActionRequest, reason string) error {
	status, _ := a.manager.GetPodStatus(r.Alert.UID)
	container := podstatus.FindContainerStatus(&status, r.Alert.Container)
	if container == nil || container.State.Running == nil {
		return errNotRunning
	}
	return a.workers.RestartContainer(r.Alert.UID, r.Alert.Container, container.ContainerID, reason)
}
