package node

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// event is an event of the Node, with the reasons and messages of the kubelet.
type event struct{ eventType, reason, message string }

// statusEvents are the events of a change of the Node's status. A Node that was just created has had none.
func statusEvents(name string, before, after *v1.NodeStatus) []event {
	var list []event
	for i := range after.Conditions {
		c := &after.Conditions[i]
		if old := find(before.Conditions, c.Type); old != nil && old.Status == c.Status {
			continue
		}
		if reason := conditionEvent(c); reason != "" {
			list = append(list, event{v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", name, reason)})
		}
	}
	was, is := before.NodeInfo.BootID, after.NodeInfo.BootID
	if was != "" && is != "" && was != is {
		list = append(list, event{v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", name, is)})
	}
	return list
}

// conditionEvent is the reason of the event that a condition has got its status; empty if there is none,
// as of a machine that cannot be read.
func conditionEvent(c *v1.NodeCondition) string {
	reasons := map[v1.NodeConditionType][2]string{
		v1.NodeMemoryPressure: {"NodeHasInsufficientMemory", "NodeHasSufficientMemory"},
		v1.NodeDiskPressure:   {"NodeHasDiskPressure", "NodeHasNoDiskPressure"},
		v1.NodePIDPressure:    {"NodeHasInsufficientPID", "NodeHasSufficientPID"},
		v1.NodeReady:          {"NodeReady", "NodeNotReady"},
	}[c.Type]
	switch c.Status {
	case v1.ConditionTrue:
		return reasons[0]
	case v1.ConditionFalse:
		return reasons[1]
	}
	return ""
}

// recordStatus records what a status that the API server has taken has changed.
func (n *Node) recordStatus(before, after *v1.NodeStatus) {
	for _, e := range statusEvents(n.o.Name, before, after) {
		n.o.Event(e.eventType, e.reason, e.message)
	}
}

// recordSchedulable records that an administrator has closed the node for new pods, or has opened it again.
func (n *Node) recordSchedulable(node *v1.Node) {
	closed := node.Spec.Unschedulable
	if n.seen && closed != n.closed {
		reason := "NodeSchedulable"
		if closed {
			reason = "NodeNotSchedulable"
		}
		n.o.Event(v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", n.o.Name, reason))
	}
	n.closed = closed
	if err := n.o.Memory.noteCordon(closed); err != nil {
		n.log.Warn("cordon not remembered: the node would come back schedulable if its Node were deleted", "err", err)
	}
}
