package runtime

import (
	"errors"
	"strings"
)

// Unsupported is a field of a pod that a runtime cannot honor.
type Unsupported struct {
	// Field is the path: "spec.containers[0].image".
	Field string
	// Reason says what the runtime cannot do and, where there is one, the way out.
	Reason string
	// Container is the name of the container that asks for it, which waits while the others run. Empty
	// means the whole pod: none of its containers is started.
	Container string
	// Waiting is the reason with which containers wait: one of the Waiting constants. Empty
	// means [WaitingConfigError].
	Waiting string
}

func (u Unsupported) String() string { return u.Field + ": " + u.Reason }

// Describe puts all that is unsupported in one message for the pod's status.
func Describe(all []Unsupported) string {
	messages := make([]string, len(all))
	for i, u := range all {
		messages[i] = u.String()
	}
	return strings.Join(messages, "; ")
}

// Refusal is why a container cannot be started, nil if it can: what the pod asks for and what
// the container itself asks for.
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
