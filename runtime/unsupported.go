package runtime

import "strings"

// Unsupported is a field of a pod that a runtime cannot honor.
type Unsupported struct {
	// Field is the path: "spec.containers[0].image".
	Field string
	// Reason says what the runtime cannot do and, where there is one, the way out.
	Reason string
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
