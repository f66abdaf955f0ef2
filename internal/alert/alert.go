package alert

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// AlertState is how far an alert has come.
type State string

// The states of alerts.
const (
	Pending  State = "pending" // its expression is true, but not yet for long enough
	Firing   State = "firing"
	Resolved State = "resolved" // it has fired and is over
)

// Alert is a rule that is, or was, true of a pod, a container, the node or the kubelet.
type Alert struct {
	// Fingerprint is the same as long as rule and labels are.
	Fingerprint string    `json:"fingerprint"`
	Rule        string    `json:"rule"`
	Severity    string    `json:"severity"`
	Scope       string    `json:"scope"` // pod, container, node, kubelet
	State       State     `json:"state"`
	Namespace   string    `json:"namespace,omitempty"`
	Pod         string    `json:"pod,omitempty"`
	UID         types.UID `json:"uid,omitempty"`
	Container   string    `json:"container,omitempty"`
	// Labels identify the alert; Annotations describe it and what to do.
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Since is when the expression became true, Firing when the alert fired, Resolved when it was over.
	Since    time.Time  `json:"since"`
	Firing   *time.Time `json:"firing,omitempty"`
	Resolved *time.Time `json:"resolved,omitempty"`
	// Silenced is the ID of the silence that keeps it from the outputs.
	Silenced string `json:"silenced,omitempty"`
	// Actions are the actions on the alert.
	Actions []Action `json:"actions,omitempty"`
}

// Action is the result of an action on an alert.
type Action struct {
	Action string    `json:"action"`
	At     time.Time `json:"at"`
	// Result is done, dry-run, refused or failed; Message says more.
	Result  string `json:"result"`
	Message string `json:"message,omitempty"`
}

// Silence keeps the alerts that match all of Matchers from the outputs until Until.
type Silence struct {
	ID       string    `json:"id"`
	Matchers []Matcher `json:"matchers"`
	Created  time.Time `json:"created"`
	Until    time.Time `json:"until"`
	By       string    `json:"by"`
	Comment  string    `json:"comment"`
}

// Matcher matches a label of an alert, as Alertmanager does.
type Matcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex,omitempty"`
	// IsEqual is false for != and !~.
	IsEqual bool `json:"isEqual"`
}

// ErrNoSilence: there is no silence of an ID.
var ErrNoSilence = errors.New("there is no such silence")
