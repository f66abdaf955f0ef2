package audit

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/nodelease"
	"github.com/statusd/statusd/internal/text"
	"github.com/statusd/statusd/podstatus"
)

const (
	// leaseAllowance is longer than the kubelet's pause between renewals: after a step of the clock the
	// lease looks old until the next one.
	leaseAllowance = 15 * time.Second
	// clockTolerance is how far the clocks of machine and server may be apart.
	clockTolerance = 10 * time.Second
	// deadAllowance is how long the node-lifecycle controller may take to mark the pods of a node that
	// is gone.
	deadAllowance = 30 * time.Second
)

// noLease is a node without a lease. A kubelet that works creates a deleted lease again at its next renewal.
func (w *world) noLease() finding {
	d := Difference{Kind: LeaseStale, Subject: "none", Since: w.Now, Certainty: Certain,
		Message:  fmt.Sprintf("Node %s has no lease, and the kubelet creates none: it does not reach the API server, or the server does not accept its writes.", w.Node),
		Evidence: []Evidence{w.evidence(SideAPI, time.Time{}, "no lease "+w.Node+" in "+v1.NamespaceNodeLease)},
		Do:       "Look at the kubelet's log for why it cannot create its lease: the network, admission webhooks, the space of etcd, its rights or its client certificate.",
	}
	if text := w.kubeletText(); text != "" {
		d.Evidence = append(d.Evidence, w.evidence(SideKubelet, time.Time{}, text))
	}
	if do := w.doProcess(); do != "" {
		d.Message = fmt.Sprintf("Node %s has no lease, and %s.", w.Node, w.processWords())
		d.Do = do
	}
	return finding{Difference: d, needs: []Side{SideAPI}, fresh: []Side{SideAPI}, allow: leaseAllowance, recurs: "no lease"}
}

// leaseTerm is how long a renewal of the lease holds.
func (w *world) leaseTerm() time.Duration { return nodelease.Term(w.Lease) }

// leaseEnd is when the lease runs out, zero if that is not known.
func (w *world) leaseEnd() time.Time {
	if !w.APIAnswer.Known() || w.Lease == nil || w.Lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	renewed := w.Lease.Spec.RenewTime.Time
	if w.LeaseAt.After(renewed) && !recent(w.LeaseAt, w.APIAnswer.Since, time.Second) {
		renewed = w.LeaseAt // the renewal came then, whatever clock it was written by
	}
	return renewed.Add(w.leaseTerm())
}

// lease compares the node's lease with the time. The kubelet writes it by this machine's clock, which may
// have been set back since: then the time that was counted decides.
func (w *world) lease() []finding {
	if w.APIAnswer.Known() && w.Lease == nil && w.NodeObject != nil {
		return []finding{w.noLease()}
	}
	end := w.leaseEnd()
	if end.IsZero() || w.Now.Before(end) && w.leaseQuiet < w.leaseTerm() || w.forgedRenewal() != nil && w.kubeletAnswers() {
		return nil // of a renewal that another writer has overwritten nothing is known: see leaseRenewer
	}
	allowed := w.leaseTerm()
	renewed := end.Add(-allowed)
	d := Difference{Kind: LeaseStale, Since: renewed, Certainty: Certain,
		Message:  fmt.Sprintf("The lease of node %s was last renewed at %s and is valid for %s: the kubelet does not reach the API server, or the server does not accept its writes.", w.Node, w.when(renewed), text.Span(allowed)),
		Evidence: []Evidence{w.evidence(SideAPI, w.LeaseAt, "lease renewed "+w.when(w.Lease.Spec.RenewTime.Time))},
		Do:       "Look at the kubelet's log for why it cannot renew its lease: the network, admission webhooks, the space of etcd, its rights or its client certificate.",
	}
	if text := w.kubeletText(); text != "" {
		d.Evidence = append(d.Evidence, w.evidence(SideKubelet, time.Time{}, text))
	}
	if do := w.doProcess(); do != "" {
		d.Message = fmt.Sprintf("The lease of node %s was last renewed at %s and is valid for %s: %s.", w.Node, w.when(renewed), text.Span(allowed), w.processWords())
		d.Do = do
	}
	return []finding{{Difference: d, needs: []Side{SideAPI}, fresh: []Side{SideAPI}, allow: leaseAllowance}}
}

// otherMachine compares the Node's identity with this machine's. A kubelet writes the identity when it starts, so an old boot ID alone may
// just predate a restart of the machine. An identity that another program has written is no sign of a kubelet: see nodeWriters.
func (w *world) otherMachine() []finding {
	if !w.APIAnswer.Known() || !w.MachineAnswer.Known() || w.NodeObject == nil {
		return nil
	}
	forged := w.forgedIdentity()
	var api, machine []string
	certain := false
	for _, id := range w.identities() {
		if id.same() || forged[id.field] {
			continue
		}
		api, machine = append(api, id.name+" "+id.api), append(machine, id.name+" "+id.machine)
		certain = certain || id.lasts || w.heardSinceBoot()
	}
	if !certain {
		return nil
	}
	return []finding{{
		Difference: Difference{Kind: TwoKubelets, Subject: "nodeInfo", Certainty: Certain, Since: w.NodeAt,
			Message:  fmt.Sprintf("Another kubelet reports for node %s: the Node has the %s, this machine has the %s.", w.Node, strings.Join(api, " and the "), strings.Join(machine, " and the ")),
			Evidence: []Evidence{w.evidence(SideAPI, w.NodeAt, strings.Join(api, ", ")), w.evidence(SideMachine, time.Time{}, strings.Join(machine, ", "))},
			Do:       fmt.Sprintf("Find the other machine whose kubelet has the name %s and its credentials, such as a clone of this one, and stop its kubelet: each pod runs twice.", w.Node)},
		needs: []Side{SideAPI, SideMachine}, fresh: []Side{SideAPI, SideMachine}, news: SideAPI, recurs: strings.Join(machine, ", "),
	}}
}

// identity is one name of the machine, as the Node and the machine have it.
type identity struct {
	name, field  string
	api, machine string
	lasts        bool // it stays the same when the machine is started again
}

// same reports whether nothing contradicts the name.
func (id identity) same() bool {
	return id.api == "" || id.machine == "" || strings.EqualFold(id.api, id.machine)
}

func (w *world) identities() []identity {
	info, here := w.NodeObject.Status.NodeInfo, w.Identity
	return []identity{
		{"machine ID", "f:machineID", info.MachineID, here.MachineID, true},
		{"system UUID", "f:systemUUID", info.SystemUUID, here.SystemUUID, true},
		{"boot ID", "f:bootID", info.BootID, here.BootID, false},
	}
}

// heardSinceBoot reports whether a kubelet has written the Node well after this machine was started.
func (w *world) heardSinceBoot() bool {
	for _, c := range w.NodeObject.Status.Conditions {
		if c.Type == v1.NodeReady && !w.Boot.IsZero() && c.Status != v1.ConditionUnknown && w.machineTime(c.LastHeartbeatTime.Time).After(w.Boot.Add(bootGrace)) {
			return true
		}
	}
	return false
}

// processWords is how the kubelet's process is, if that explains its silence.
func (w *world) processWords() string {
	if w.Process == nil {
		return "the kubelet does not run"
	}
	if w.Process.Frozen {
		return fmt.Sprintf("the kubelet (process %d) is frozen by its control group", w.Process.PID)
	}
	return fmt.Sprintf("the kubelet (process %d) is stopped by a signal", w.Process.PID)
}

// doProcess is what to do about a kubelet that does not run, empty if it may run.
func (w *world) doProcess() string {
	switch {
	case !w.kubeletHalted():
		return ""
	case w.Process == nil:
		return "Start the kubelet."
	case w.Process.Frozen:
		return "Find out what has frozen the kubelet, and thaw it (systemctl thaw)."
	}
	return fmt.Sprintf("Continue the kubelet (kill -CONT %d), or restart it.", w.Process.PID)
}

func (w *world) kubeletText() string {
	switch a := w.KubeletAnswer; {
	case w.kubeletStopped():
		return w.processWords()
	case a.Known():
		return "answers"
	case a.Err != "":
		return fmt.Sprintf("has not answered since %s: %s", w.when(a.Silent), a.Err)
	}
	return ""
}

// clock compares the clocks of machine and server.
func (w *world) clock() []finding {
	apart := w.Clock
	if w.ClockAt.IsZero() || apart.Abs()-w.ClockError < clockTolerance {
		return nil
	}
	relation := "behind"
	if apart < 0 {
		relation = "ahead of"
	}
	return []finding{{
		Difference: Difference{Kind: ClockSkew, Since: w.ClockAt, Certainty: Certain,
			Message:  fmt.Sprintf("The clock of node %s is %s %s the API server's: times in statuses, events and leases are not true, and certificates may be refused.", w.Node, text.Span(apart.Abs()), relation),
			Evidence: []Evidence{{Side: SideAPI, At: w.ClockAt, From: w.APIAnswer.From, Text: fmt.Sprintf("its clock and the clock of this machine differ by %s, known to %s", text.Took(apart.Abs()), text.Took(w.ClockError))}},
			Do:       "Check time synchronization (chrony, systemd-timesyncd) on the node and on the server."},
		stamp: w.ClockAt,
	}}
}

// readyOnDeadNode is a pod that the API calls Ready, though the API itself says that its node is gone.
func (w *world) readyOnDeadNode(p *podView) []finding {
	if !w.APIAnswer.Known() || p.api == nil || podstatus.IsTerminal(p.api.Pod.Status.Phase) {
		return nil
	}
	ready := podstatus.FindCondition(p.api.Pod.Status.Conditions, v1.PodReady)
	if ready == nil || ready.Status != v1.ConditionTrue {
		return nil
	}
	since, text := w.nodeGone()
	if text == "" {
		return nil
	}
	do := "Bring the kubelet back; check that the node-lifecycle controller runs, which marks the pods of such a node."
	if w.NodeObject == nil {
		do = "Restart the kubelet, which registers its node again, or delete the pods of the node."
	}
	return []finding{{
		Difference: Difference{Kind: ReadyOnDeadNode, Pod: p.ref, Since: since, Certainty: Certain,
			Message: fmt.Sprintf("The API says that %s/%s is Ready, but %s.", p.ref.Namespace, p.ref.Name, text),
			Evidence: []Evidence{
				w.evidence(SideAPI, p.api.At, "pod condition Ready is True since "+w.when(ready.LastTransitionTime.Time)),
				w.evidence(SideAPI, w.NodeAt, text),
			},
			Do: do},
		needs: []Side{SideAPI}, fresh: []Side{SideAPI}, news: SideAPI, allow: deadAllowance,
	}}
}

// nodeGone is since when the API says that the node is gone, and how it says so.
func (w *world) nodeGone() (time.Time, string) {
	if w.NodeObject == nil {
		return w.NodeAt, fmt.Sprintf("node %s does not exist", w.Node)
	}
	for _, c := range w.NodeObject.Status.Conditions {
		if c.Type == v1.NodeReady && c.Status == v1.ConditionUnknown {
			return w.machineTime(c.LastTransitionTime.Time), fmt.Sprintf("node %s has been unknown to the API since %s (%s)", w.Node, w.when(c.LastTransitionTime.Time), c.Reason)
		}
	}
	return time.Time{}, ""
}
