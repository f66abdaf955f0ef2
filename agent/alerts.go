package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/internal/backoff"
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
	a.known = make(chan struct{})
	process := alerting.Process{
		Source: answers{a}, Guard: a.guardSource(), Ready: a.known, Node: a.nodeName, StateDir: a.config.StateDir,
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

const (
	// knownWithin is how long the first reports of static pods are waited for: one that hangs keeps no rule from the other pods.
	knownWithin = 30 * time.Second
	// knownEvery is how often they are looked for.
	knownEvery = 20 * time.Millisecond
)

func (a *Agent) runAlerts(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() { a.awaitKnown(ctx) })
	return a.alerts.Run(ctx)
}

// awaitKnown closes known once all pods are listed and the static ones are reported. The API has the status of the
// others; of a static pod nothing is known before, and it would look like one whose alerts are over.
func (a *Agent) awaitKnown(ctx context.Context) {
	select {
	case <-a.dispatcher.allListed:
	case <-ctx.Done():
		return
	}
	for began := time.Now(); !a.staticKnown(); {
		if time.Since(began) > knownWithin {
			a.log.Warn("some static pods are not reported yet, and their alerts may end and begin again")
			break
		}
		if !backoff.Sleep(ctx, knownEvery) {
			return
		}
	}
	close(a.known)
}

func (a *Agent) staticKnown() bool {
	return !slices.ContainsFunc(a.table.All(), func(pod *v1.Pod) bool {
		if !podstatus.IsStatic(pod) {
			return false
		}
		_, known := a.manager.GetPodStatus(pod.UID)
		return !known
	})
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
