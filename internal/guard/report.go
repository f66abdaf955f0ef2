package guard

import "time"

// Health is how a kubelet is.
type Health string

// The healths.
const (
	Healthy   Health = "healthy"
	Degraded  Health = "degraded"  // it works, but not as it should
	Unhealthy Health = "unhealthy" // it does not do its work
	Unknown   Health = "unknown"   // there is too little evidence
)

// Healths are all verdicts, the best first.
func Healths() []Health { return []Health{Healthy, Degraded, Unhealthy, Unknown} }

// Reason is one thing that is wrong.
type Reason struct {
	// Code is a word in CamelCase, Message the evidence in words.
	Code    string    `json:"code"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// Verdict is the conclusion from the evidence.
type Verdict struct {
	Health  Health    `json:"health"`
	Since   time.Time `json:"since"`
	Reasons []Reason  `json:"reasons"`
	// Helps reports whether a restart would help; if not, Do is the remedy.
	Helps bool   `json:"restartHelps"`
	Do    string `json:"do,omitempty"`

	// pending: the reasons are signs that do not count yet, so nothing is restarted because of them.
	pending bool
}

// Restart is one restart of the kubelet.
type Restart struct {
	At time.Time `json:"at"`
	// What was restarted; the kubelet if empty.
	What Target `json:"what,omitempty"`
	// By is the initiator: guard, or another.
	By     string `json:"by"`
	Reason string `json:"reason"`
	Err    string `json:"error,omitempty"`
	// Evidence is the directory with the evidence kept before the restart.
	Evidence string `json:"evidence,omitempty"`
	// EvidenceErr is why the evidence, or a part of it, was not kept: a full disk does not prevent a
	// restart.
	EvidenceErr string `json:"evidenceError,omitempty"`
}

// Report is the guard's report on the kubelet.
type Report struct {
	At time.Time `json:"at"`
	Verdict
	// Evidence is the evidence of the verdict, by name, in words.
	Evidence []Item `json:"evidence"`
	// Unit is the guarded service: a unit of systemd, or a command.
	Unit     string    `json:"unit,omitempty"`
	PID      int       `json:"pid,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Restarts []Restart `json:"restarts"`
	// Would are the restarts that the guard would have made if it were allowed to, one for each time that the kubelet was unhealthy.
	Would []Restart `json:"would,omitempty"`
	// Maintenance is until when the guard restarts nothing; zero if it may.
	Maintenance time.Time `json:"maintenance,omitzero"`
	// NextRestart is when the guard restarts at the earliest; Withheld is why it does not.
	NextRestart time.Time `json:"nextRestart,omitzero"`
	Withheld    string    `json:"withheld,omitempty"`
	// Under is the current action: a restart, a start in order. Empty: none.
	Under string `json:"under,omitempty"`
}

// Item is one piece of evidence.
type Item struct {
	Name string    `json:"name"`
	At   time.Time `json:"at,omitzero"`
	OK   bool      `json:"ok"`
	// Unknown: the value could not be read, and Text has the reason. Then OK is false and meaningless.
	Unknown bool   `json:"unknown,omitempty"`
	Text    string `json:"text"`
}
