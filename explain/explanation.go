package explain

import "time"

// State is what a pod is in, in one word.
type State string

// The states.
const (
	StateUnscheduled  State = "Unscheduled"  // no node has the pod
	StateStarting     State = "Starting"     // not all containers have started
	StateInitializing State = "Initializing" // init containers are at work
	StateReady        State = "Ready"        // the pod serves
	StateNotReady     State = "NotReady"     // the pod runs and does not serve
	StateTerminating  State = "Terminating"  // the pod is being deleted
	StateSucceeded    State = "Succeeded"    // all containers have done their work
	StateFailed       State = "Failed"       // the pod has failed for good
	StateRejected     State = "Rejected"     // the node has not taken the pod
	StateEvicted      State = "Evicted"      // the pod had to make room
	StateUnknown      State = "Unknown"      // the node has not been heard of
)

// Explanation says why a pod is in its state.
type Explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	// Since is when the pod came into the state, nil if that is not known.
	Since *time.Time `json:"since,omitempty"`
	// NotTrue is how what the API reports of the pod is not true; the causes of each are the evidence.
	NotTrue []Cause `json:"notTrue,omitempty"`
	// Causes are why, the most important first. A pod that serves has none.
	Causes []Cause `json:"causes,omitempty"`
	// Notes are what is worth knowing although it is not why: restarts, a pending resize.
	Notes []Cause `json:"notes,omitempty"`
	// Delivery says what keeps the API server from knowing the newest status; nil if it knows it.
	Delivery *Cause `json:"delivery,omitempty"`
	// Next is what would change the state, if there is no cause.
	Next *Next `json:"next,omitempty"`

	now time.Time
}

// Cause is why something is as it is.
type Cause struct {
	Code Code `json:"code"`
	// Container is the container that this is about, if it is about one.
	Container string `json:"container,omitempty"`
	// Since is when it began, nil if that is not known.
	Since *time.Time `json:"since,omitempty"`
	// Text is a clause that a person would say, without its causes: "container db is not ready".
	Text   string  `json:"text"`
	Causes []Cause `json:"causes,omitempty"`
	// Next is what would change it. Each cause without deeper ones has it.
	Next *Next `json:"next,omitempty"`
}

// Next is what would change a cause.
type Next struct {
	// Do is what a person can do, as an imperative. It is empty if there is only to wait.
	Do string `json:"do,omitempty"`
	// Wait is what happens by itself, as a clause, at At if that is known.
	Wait string     `json:"wait,omitempty"`
	At   *time.Time `json:"at,omitempty"`
}

// Roots returns the causes that have no deeper ones, in order.
func (e Explanation) Roots() []Cause {
	var roots []Cause
	var walk func([]Cause)
	walk = func(causes []Cause) {
		for _, c := range causes {
			if len(c.Causes) == 0 {
				roots = append(roots, c)
			}
			walk(c.Causes)
		}
	}
	walk(e.Causes)
	return roots
}

func do(text string) *Next { return &Next{Do: text} }

func wait(text string) *Next { return &Next{Wait: text} }

func waitUntil(text string, at time.Time) *Next { return &Next{Wait: text, At: known(at)} }

// known returns nil for a time that is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
