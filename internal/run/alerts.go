package run

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/podstatus"
)

const (
	// knownWithin is how long rules wait for the first reports of static pods: a hanging pod does not keep rules from the other
	// pods.
	knownWithin = 30 * time.Second
	// knownEvery is how often they are looked for.
	knownEvery = 20 * time.Millisecond
)

// awaitKnown closes known once all pods are listed and the static ones are reported. The API has the status of the
// others; of a static pod nothing is known before, and it would look like one whose alerts are over.
func (p *Process) awaitKnown(ctx context.Context) error {
	defer func() { <-ctx.Done() }()
	select {
	case <-p.node.Listed:
	case <-ctx.Done():
		return nil
	}
	for began := time.Now(); !p.staticKnown(); {
		if time.Since(began) > knownWithin {
			p.log.Warn("some static pods are not reported yet, and their alerts may end and begin again")
			break
		}
		if !backoff.Sleep(ctx, knownEvery) {
			return nil
		}
	}
	close(p.known)
	return nil
}

func (p *Process) staticKnown() bool {
	return !slices.ContainsFunc(p.node.Table.All(), func(pod *v1.Pod) bool {
		if !podstatus.IsStatic(pod) {
			return false
		}
		_, known := p.node.Manager.GetPodStatus(pod.UID)
		return !known
	})
}

var errNotRunning = errors.New("the container is not running")

// restartContainer restarts the container of an alert: the run of it that the status shows.
func (p *Process) restartContainer(r *engine.ActionRequest, reason string) error {
	status, _ := p.node.Manager.GetPodStatus(r.Alert.UID)
	container := podstatus.FindContainerStatus(&status, r.Alert.Container)
	if container == nil || container.State.Running == nil {
		return errNotRunning
	}
	return p.node.Workers.RestartContainer(r.Alert.UID, r.Alert.Container, container.ContainerID, reason)
}
