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

// conditionEvent returns the reason of the event for the status of a condition, or empty if there is no
// such event, as when the machine cannot be read.
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

// recordStatus sends events for the changes by an accepted status.
func (n *Node) recordStatus(before, after *v1.NodeStatus) {
	for _, e := range statusEvents(n.o.Name, before, after) {
		n.o.Event(e.eventType, e.reason, e.message)
	}
}

// recordSchedulable sends an event when the Node was cordoned or uncordoned.
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
	if !n.followed.Load() { // the look may be older than what the watch has shown
		n.noteCordon(node)
	}
}
