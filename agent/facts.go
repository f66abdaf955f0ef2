package agent

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// facts returns the facts about a pod for its explanation.
func (a *Agent) facts(pod *v1.Pod) explain.Facts {
	now := time.Now()
	known, _ := a.workers.Facts(pod.UID)
	f := explain.Facts{
		Now: now, Pod: pod, Node: a.nodeFacts(now),
		Containers: a.containerFacts(pod, known),
		Waits:      waits(known),
		Delivery:   a.deliveryFacts(pod),
		Warnings:   a.warnings.of(pod.UID),
	}
	if status, ok := a.manager.GetPodStatus(pod.UID); ok {
		f.Status = &status
	}
	a.logs.add(&f)
	return f
}

func (a *Agent) nodeFacts(now time.Time) explain.Node {
	return explain.Node{
		Name: a.nodeName, Pressure: a.evictions.Conditions(), ShuttingDown: a.shutdown.Err() != nil,
		Unreachable: a.unreachableSince(now),
	}
}

// containerFacts returns the facts of the workers and the prober beyond the status.
func (a *Agent) containerFacts(pod *v1.Pod, known worker.Facts) map[string]explain.Container {
	all := make(map[string]explain.Container)
	for name, c := range known.Containers {
		all[name] = explain.Container{ContainerFacts: c}
	}
	for name, since := range known.Pulling {
		c := all[name]
		c.Pulling = since
		all[name] = c
	}
	for _, r := range a.prober.Results(pod.UID) {
		c := all[r.Container]
		switch found := &r.Probe; r.Kind {
		case runtime.StartupProbe:
			c.Startup = found
		case runtime.ReadinessProbe:
			c.Readiness = found
		case runtime.LivenessProbe:
			c.Liveness = found
		}
		all[r.Container] = c
	}
	return all
}

// waits returns what the node waits for before it starts a pod.
func waits(known worker.Facts) string {
	switch {
	case known.WaitsFor != "":
		return "an older pod of the same name has containers that still run"
	case known.WantsRoom:
		return "it is critical, and the pods that leave for it have not ended yet"
	}
	return ""
}

// deliveryFacts are nil for a node that has no API server, and for a pod without a status.
func (a *Agent) deliveryFacts(pod *v1.Pod) *podstatus.Delivery {
	d, ok := a.manager.Delivery(pod.UID)
	if !ok || a.client == nil {
		return nil
	}
	return &d
}

// leaseTrouble is how old a lease may be: it is renewed each 10 s.
const leaseTrouble = 20 * time.Second

// unreachableSince is since when the API server has not been reached, zero if it has been.
func (a *Agent) unreachableSince(now time.Time) time.Time {
	if a.node == nil {
		return time.Time{}
	}
	reached := a.node.LeaseRenewed()
	if reached.IsZero() {
		reached = a.born
	}
	if now.Sub(reached) > leaseTrouble {
		return reached
	}
	return time.Time{}
}
