package history

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// Diff returns the differences between two statuses of a pod, as records without times: the phase,
// then the conditions in the order of the newer status, then the containers. A change of a message
// alone is no transition.
func Diff(older, newer *v1.PodStatus) []Record {
	var records []Record
	if older.Phase != newer.Phase || older.Reason != newer.Reason {
		records = append(records, Record{Kind: KindPhase, From: string(older.Phase), To: string(newer.Phase), Reason: newer.Reason, Message: newer.Message})
	}
	records = diffConditions(records, older.Conditions, newer.Conditions)
	records = diffContainers(records, older.InitContainerStatuses, newer.InitContainerStatuses)
	records = diffContainers(records, older.ContainerStatuses, newer.ContainerStatuses)
	return diffContainers(records, older.EphemeralContainerStatuses, newer.EphemeralContainerStatuses)
}

func diffConditions(records []Record, older, newer []v1.PodCondition) []Record {
	for i := range newer {
		c := &newer[i]
		r := Record{Kind: KindCondition, Subject: string(c.Type), To: string(c.Status), Reason: c.Reason, Message: c.Message}
		if before := condition(older, c.Type); before != nil {
			if before.Status == c.Status && before.Reason == c.Reason {
				continue
			}
			r.From = string(before.Status)
		}
		records = append(records, r)
	}
	for i := range older {
		if c := &older[i]; condition(newer, c.Type) == nil {
			records = append(records, Record{Kind: KindCondition, Subject: string(c.Type), From: string(c.Status)})
		}
	}
	return records
}

func condition(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

func diffContainers(records []Record, older, newer []v1.ContainerStatus) []Record {
	for i := range newer {
		c := &newer[i]
		before := named(older, c.Name)
		if before == nil {
			before = &v1.ContainerStatus{}
		}
		records = diffContainer(records, before, c)
	}
	for i := range older {
		if c := &older[i]; named(newer, c.Name) == nil {
			records = append(records, Record{Kind: KindContainer, Container: c.Name, From: stateOf(c).name})
		}
	}
	return records
}

func diffContainer(records []Record, older, newer *v1.ContainerStatus) []Record {
	from, to := stateOf(older), stateOf(newer)
	if older.RestartCount != newer.RestartCount {
		r := Record{Kind: KindRestart, Container: newer.Name, From: strconv.Itoa(int(older.RestartCount)), To: strconv.Itoa(int(newer.RestartCount))}
		if ended := newer.LastTerminationState.Terminated; ended != nil {
			r.Reason, r.Message = ended.Reason, ending(ended)
		}
		records = append(records, r)
	}
	if from != to {
		records = append(records, Record{Kind: KindContainer, Container: newer.Name, From: from.name, To: to.name, Reason: to.reason, Message: message(newer)})
	}
	if older.Ready != newer.Ready {
		records = append(records, Record{Kind: KindReady, Container: newer.Name, From: readiness(older.Ready), To: readiness(newer.Ready)})
	}
	return records
}

// state is what distinguishes one state of a container from the next.
type state struct {
	name, reason string
	run          string // which run of the container it is
	exit         int32
}

func stateOf(c *v1.ContainerStatus) state {
	switch s := &c.State; {
	case s.Running != nil:
		return state{name: "running", run: c.ContainerID}
	case s.Terminated != nil:
		return state{name: "terminated", reason: s.Terminated.Reason, exit: s.Terminated.ExitCode, run: c.ContainerID}
	case s.Waiting != nil:
		return state{name: "waiting", reason: s.Waiting.Reason}
	case c.Name != "":
		return state{name: "waiting"} // a container without a state is one that waits
	default:
		return state{}
	}
}

// message is what the state of a container says of its cause.
func message(c *v1.ContainerStatus) string {
	switch s := &c.State; {
	case s.Terminated != nil:
		return ending(s.Terminated)
	case s.Waiting != nil:
		return s.Waiting.Message
	default:
		return ""
	}
}

// ending says how a container ended: "exit code 3: out of cheese".
func ending(t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Signal != 0 {
		text = fmt.Sprintf("signal %d", t.Signal)
	}
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}

func readiness(ready bool) string {
	if ready {
		return "ready"
	}
	return "not ready"
}

func named(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}
