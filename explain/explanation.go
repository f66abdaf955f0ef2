package explain

import "time"

// State is the state of a pod, in one word.
type State string

// The states.
const (
	StateUnscheduled  State = "Unscheduled"  // the pod has no node
	StateStarting     State = "Starting"     // not all containers have started
	StateInitializing State = "Initializing" // init containers are running
	StateReady        State = "Ready"        // the pod is Ready
	StateNotReady     State = "NotReady"     // the pod runs but is not Ready
	StateTerminating  State = "Terminating"  // the pod is being deleted
	StateSucceeded    State = "Succeeded"    // all containers have completed
	StateFailed       State = "Failed"       // the pod has failed for good
	StateRejected     State = "Rejected"     // the node has rejected the pod
	StateEvicted      State = "Evicted"      // the node has evicted the pod
	StateUnknown      State = "Unknown"      // the node does not report
)

// Explanation explains why a pod is in its state.
type Explanation struct {
	// Kind is the kind of the object, empty for a pod.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	// Since is when the pod entered the state, nil if unknown.
	Since *time.Time `json:"since,omitempty"`
	// NotTrue lists what is wrong in the pod's status in the API; the causes of each entry are the
	// evidence.
	NotTrue []Cause `json:"notTrue,omitempty"`
	// Causes explain the state, the most important first. A ready pod has no causes.
	Causes []Cause `json:"causes,omitempty"`
	// Notes are facts worth knowing that do not explain the state: restarts, a pending resize.
	Notes []Cause `json:"notes,omitempty"`
	// Delivery explains why the API server does not have the newest status; nil if it has.
	Delivery *Cause `json:"delivery,omitempty"`
	// Logs are the ends of the logs of failed runs.
	Logs []Log `json:"logs,omitempty"`
	// Next is what would change the state, if there is no cause.
	Next *Next `json:"next,omitempty"`

	now time.Time
	// several: the pod has more than one container, so that each is named.
	several bool
}

// Cause is a cause of a state or of another cause.
type Cause struct {
	Code Code `json:"code"`
	// Container is the name of the container, empty if the cause is not about a container.
	Container string `json:"container,omitempty"`
	// Since is when the cause began, nil if unknown.
	Since *time.Time `json:"since,omitempty"`
	// Text is a clause without the deeper causes: "container db is not ready".
	Text   string  `json:"text"`
	Causes []Cause `json:"causes,omitempty"`
	// Behind: the deeper causes come first in a sentence, Text is their effect, such as "4 restarts
	// in 10 min".
	Behind bool `json:"behind,omitempty"`
	// Next is what would change the cause. Each cause without deeper causes has a Next.
	Next *Next `json:"next,omitempty"`
}

// Next is what would change a cause.
type Next struct {
	// Do is what a person can do, as an imperative; empty if waiting is all that helps.
	Do string `json:"do,omitempty"`
	// Command is a shell command that does it or shows more.
	Command string `json:"command,omitempty"`
	// Wait is what happens by itself, as a clause, at time At if known.
	Wait string     `json:"wait,omitempty"`
	At   *time.Time `json:"at,omitempty"`
}

// Roots returns the causes without deeper causes, in order.
func (e Explanation) Roots() []Cause { return roots(e.Causes) }

func roots(causes []Cause) (found []Cause) {
	for _, c := range causes {
		if len(c.Causes) == 0 {
			found = append(found, c)
		}
		found = append(found, roots(c.Causes)...)
	}
	return found
}

// At returns a decoded explanation, to be rendered at the time now.
func (e Explanation) At(now time.Time) Explanation {
	e.now = now
	return e
}

// Ended reports whether the state is final.
func (e Explanation) Ended() bool { return ends[e.State] }

// Outline returns the state with the codes of the causes: it changes when something happens, not as time passes.
func (e Explanation) Outline() string {
	said := string(e.State)
	var walk func([]Cause)
	walk = func(causes []Cause) {
		for _, c := range causes {
			said += " " + string(c.Code) + "/" + c.Container + "("
			walk(c.Causes)
			said += ")"
		}
	}
	walk(e.Causes)
	walk(e.Notes)
	if e.Delivery != nil {
		walk([]Cause{*e.Delivery})
	}
	return said
}

// leadsTo reports whether a cause or one behind it has a code.
func (c Cause) leadsTo(code Code) bool {
	if c.Code == code {
		return true
	}
	for _, deeper := range c.Causes {
		if deeper.leadsTo(code) {
			return true
		}
	}
	return false
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
