package runtime

import (
	"errors"
	"strings"
)

// Unsupported is a field of a pod that a runtime cannot honor.
type Unsupported struct {
	// Field is the path: "spec.containers[0].image".
	Field string
	// Reason describes what the runtime cannot do and, if possible, the remedy.
	Reason string
	// Container is the name of the container with the field, which waits while the others run. Empty
	// means the whole pod: no container is started.
	Container string
	// Waiting is the reason with which containers wait: one of the Waiting constants. Empty
	// means [WaitingConfigError].
	Waiting string
}

func (u Unsupported) String() string { return u.Field + ": " + u.Reason }

// Describe formats all unsupported fields as one message for the pod's status.
func Describe(all []Unsupported) string {
	messages := make([]string, len(all))
	for i, u := range all {
		messages[i] = u.String()
	}
	return strings.Join(messages, "; ")
}

// Refusal returns why a container cannot be started, or nil: the unsupported fields of the pod and
// of the container.
func Refusal(all []Unsupported, container string) *StartError {
	refusal := &StartError{}
	var found []Unsupported
	for _, u := range all {
		if u.Container != "" && u.Container != container {
			continue
		}
		found = append(found, u)
		if refusal.Reason == "" {
			refusal.Reason = u.Waiting
		}
	}
	if len(found) == 0 {
		return nil
	}
	if refusal.Reason == "" {
		refusal.Reason = WaitingConfigError
	}
	refusal.Err = errors.New(Describe(found))
	return refusal
}
