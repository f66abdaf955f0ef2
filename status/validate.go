package status

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// InvalidStatusError is the error of a status with an invalid field. Nothing of such a status is stored.
type InvalidStatusError struct {
	Field   string // such as status.containerStatuses[1].name
	Problem string
}

func (e *InvalidStatusError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Problem) }

// checkStatus refuses what the API server would take although no pod can be in that status,
// or could not take in a patch. What a kubelet may report is not refused: a status without a
// phase, without containers, or of containers that the spec does not name.
func checkStatus(status *v1.PodStatus) error {
	if len(status.Message) > longestText {
		return &InvalidStatusError{"status.message", textProblem(status.Message)}
	}
	switch status.Phase {
	case "", v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown:
	default:
		return &InvalidStatusError{"status.phase", fmt.Sprintf("there is no phase %q", status.Phase)}
	}
	for i := range status.Conditions {
		if status.Conditions[i].Type == "" {
			return &InvalidStatusError{fmt.Sprintf("status.conditions[%d].type", i), "is empty"}
		}
		if message := status.Conditions[i].Message; len(message) > longestText {
			return &InvalidStatusError{fmt.Sprintf("status.conditions[%d].message", i), textProblem(message)}
		}
	}
	for i := range status.PodIPs {
		if status.PodIPs[i].IP == "" {
			return &InvalidStatusError{fmt.Sprintf("status.podIPs[%d].ip", i), "is empty"}
		}
	}
	for i := range status.HostIPs {
		if status.HostIPs[i].IP == "" {
			return &InvalidStatusError{fmt.Sprintf("status.hostIPs[%d].ip", i), "is empty"}
		}
	}
	for _, list := range []struct {
		field    string
		statuses []v1.ContainerStatus
	}{
		{"status.containerStatuses", status.ContainerStatuses},
		{"status.initContainerStatuses", status.InitContainerStatuses},
		{"status.ephemeralContainerStatuses", status.EphemeralContainerStatuses},
	} {
		if err := checkContainers(list.field, list.statuses); err != nil {
			return err
		}
	}
	return nil
}

// longestText is the longest message that is taken, in bytes. A server takes requests of 3 MiB and
// its etcd objects of 1.5 MiB by default; one message beyond that would keep the whole status from the API
// for good. Messages of terminated containers are cut (N2).
const longestText = 256 << 10

func textProblem(text string) string {
	return fmt.Sprintf("has %d bytes, which is more than %d and may be more than the API server can store", len(text), longestText)
}

func checkContainers(list string, statuses []v1.ContainerStatus) error {
	for i := range statuses {
		s := &statuses[i]
		field, problem := "", ""
		switch {
		case s.Name == "":
			field, problem = "name", "is empty"
		case names(statuses[:i], s.Name):
			field, problem = "name", fmt.Sprintf("%q is the name of another status of the list", s.Name)
		case states(&s.State) > 1:
			field, problem = "state", "says more than one of waiting, running and terminated"
		case states(&s.LastTerminationState) > 1:
			field, problem = "lastState", "says more than one of waiting, running and terminated"
		case s.RestartCount < 0:
			field, problem = "restartCount", "is negative"
		case s.State.Waiting != nil && len(s.State.Waiting.Message) > longestText:
			field, problem = "state.waiting.message", textProblem(s.State.Waiting.Message)
		default:
			continue
		}
		return &InvalidStatusError{fmt.Sprintf("%s[%d].%s", list, i, field), problem}
	}
	return nil
}

func states(s *v1.ContainerState) int {
	n := 0
	for _, is := range []bool{s.Waiting != nil, s.Running != nil, s.Terminated != nil} {
		if is {
			n++
		}
	}
	return n
}
