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
	// Kind is that of the object, empty for a pod.
	Kind      string `json:"kind,omitempty"`
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
	// Logs are the ends of the logs of the runs that failed.
	Logs []Log `json:"logs,omitempty"`
	// Next is what would change the state, if there is no cause.
	Next *Next `json:"next,omitempty"`

	now time.Time
	// several: the pod has more than one container, so that each is named.
	several bool
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
	// Behind: the causes come first, Text is what follows from them, such as "4 restarts in 10 min".
	Behind bool `json:"behind,omitempty"`
	// Next is what would change it. Each cause without deeper ones has it.
	Next *Next `json:"next,omitempty"`
}

// Next is what would change a cause.
type Next struct {
	// Do is what a person can do, as an imperative. It is empty if there is only to wait.
	Do string `json:"do,omitempty"`
	// Command does it, or shows more, if it is copied to a shell.
	Command string `json:"command,omitempty"`
	// Wait is what happens by itself, as a clause, at At if that is known.
	Wait string     `json:"wait,omitempty"`
	At   *time.Time `json:"at,omitempty"`
}

// Roots returns the causes that have no deeper ones, in order.
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

// At is an explanation that was decoded, to be said at a time.
func (e Explanation) At(now time.Time) Explanation {
	e.now = now
	return e
}

// Ended reports whether the state is an end that no waiting changes.
func (e Explanation) Ended() bool { return ends[e.State] }

// Outline is the state with the codes of the causes: it changes when something has happened, not with the time that passes.
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
