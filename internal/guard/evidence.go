package guard

import "time"

// Fact is one piece of evidence: a value and the time when it was read, or the reason why it is
// unknown. Unknown facts never count against a kubelet.
type Fact[T any] struct {
	At    time.Time `json:"at,omitzero"`
	Known bool      `json:"known"`
	Value T         `json:"value"`
	// Why it is not known.
	Why string `json:"why,omitempty"`
}

// Read is a fact that was read at a time.
func Read[T any](at time.Time, value T) Fact[T] { return Fact[T]{At: at, Known: true, Value: value} }

// NotKnown is a fact that could not be read at a time.
func NotKnown[T any](at time.Time, why string) Fact[T] { return Fact[T]{At: at, Why: why} }

// Process is the process of the kubelet, and its supervisor's record of it.
type Process struct {
	// Exists: there is a process, a zombie included.
	Exists bool `json:"exists"`
	// Sure: it was read where the process must be if it exists (its supervisor, its parent), not found
	// by a search, which another PID namespace defeats.
	Sure bool `json:"sure"`
	PID  int  `json:"pid,omitempty"`
	// Started is the start of the process, or of the last process if none runs.
	Started time.Time `json:"started,omitzero"`
	Stopped bool      `json:"stopped,omitempty"` // by SIGSTOP or a debugger: state T
	Zombie  bool      `json:"zombie,omitempty"`
	// ExitCode and Signal are how the last process ended, if that is known. 0 is an end as any other.
	ExitCode *int      `json:"exitCode,omitempty"`
	Signal   string    `json:"signal,omitempty"`
	Ended    time.Time `json:"ended,omitzero"`
	// Unit is the state of the unit, as in active/running. Empty if there is no unit.
	Unit string `json:"unit,omitempty"`
	// Restarting: the supervisor is about to start it again by itself.
	Restarting bool `json:"restarting,omitempty"`
	// Starting: there is no process yet, and the supervisor is about to start one: a job waits for what must be there before,
	// or what runs before the process has not ended.
	Starting bool `json:"starting,omitempty"`
	// Masked: the operator has made the unit impossible to start. Disabled: the unit is not started at boot.
	Masked   bool `json:"masked,omitempty"`
	Disabled bool `json:"disabled,omitempty"`
	// Frozen: systemctl freeze has stopped all of its processes by their control group.
	Frozen bool `json:"frozen,omitempty"`
	// Stopping: the supervisor ends the process because of a request. Asked is when the last process, which has ended, was
	// requested to stop; zero if it ended by itself.
	Stopping bool      `json:"stopping,omitempty"`
	Asked    time.Time `json:"asked,omitzero"`
	// Starts is how often the supervisor has restarted it by itself.
	Starts uint32 `json:"starts,omitempty"`
}

// Answer is the result of one request.
type Answer struct {
	// Answered: a response arrived. OK: the response reports success.
	Answered bool          `json:"answered"`
	OK       bool          `json:"ok"`
	Text     string        `json:"text,omitempty"`
	Took     time.Duration `json:"took,omitempty"`
}

// Lease is the lease of the node, as the API server has it.
type Lease struct {
	// Exists: there is one, so the kubelet has registered the node at least once.
	Exists bool `json:"exists"`
	// Renewed is the time that the kubelet has written, Seen is when a renewal was last noticed here. The
	// younger one counts, so that a step of the clock is no alarm.
	Renewed time.Time `json:"renewed,omitzero"`
	Seen    time.Time `json:"seen,omitzero"`
	// Duration is how long it counts; 40 s with the defaults of a kubelet.
	Duration time.Duration `json:"duration,omitempty"`
	// Holder is the lease's, Writer is the name in managedFields under which it was last renewed.
	Holder string `json:"holder,omitempty"`
	Writer string `json:"writer,omitempty"`
	// Foreign: the writer is not the kubelet, so that its renewals are no evidence about the kubelet.
	Foreign bool `json:"foreign,omitempty"`
}

// PLEG is the loop of the kubelet that compares the runtime's containers with its last list.
type PLEG struct {
	// Relist is how long a relist took in the mean since the last look, LastSeen is when one last began.
	Relist   time.Duration `json:"relist"`
	LastSeen time.Time     `json:"lastSeen,omitzero"`
	// Bound is after how long without a relist the kubelet calls itself not ready; 3 minutes if 0. It is longer for one
	// that the runtime reports its events.
	Bound time.Duration `json:"bound,omitempty"`
}

// Operations are the kubelet's requests to the runtime since the last look.
type Operations struct {
	Count  int           `json:"count"`
	Errors int           `json:"errors"`
	Mean   time.Duration `json:"mean"`
}

// Requests are the kubelet's writes to the API server since the last look, by its own count.
type Requests struct {
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"`
	// Codes are the status codes of the refused requests, as in 403 or 500.
	Codes string `json:"codes,omitempty"`
}

// Maintenance is the Node's annotation.
type Maintenance struct {
	// On: the annotation requests maintenance, until Until, or as long as the annotation exists if Until is
	// zero.
	On    bool      `json:"on"`
	Until time.Time `json:"until,omitzero"`
}

// under reports whether there is maintenance at a time.
func (m Maintenance) under(now time.Time) bool {
	return m.On && (m.Until.IsZero() || now.Before(m.Until))
}

// Certificates are the kubelet's reports about its own certificates. A zero time means no report.
type Certificates struct {
	ClientExpires time.Time `json:"clientExpires,omitzero"`
	ServerExpires time.Time `json:"serverExpires,omitzero"`
	// RenewalErrors counts the renewals that failed since one succeeded, or since the first look.
	RenewalErrors int `json:"renewalErrors"`
}

// Behind is how far the statuses are behind, as found by an audit. Oldest is the age of the oldest
// difference.
type Behind struct {
	APIBehindKubelet           int           `json:"apiBehindKubelet"`
	APIBehindKubeletOldest     time.Duration `json:"apiBehindKubeletOldest"`
	KubeletBehindRuntime       int           `json:"kubeletBehindRuntime"`
	KubeletBehindRuntimeOldest time.Duration `json:"kubeletBehindRuntimeOldest"`
}

// Disk is the file system of the kubelet's root directory.
type Disk struct {
	Free, Total, InodesFree, Inodes uint64
	ReadOnly                        bool
	// Err is why a write failed that was tried; empty if none has.
	Err string
}

// Full reports whether the kubelet cannot write there.
func (d Disk) Full() bool {
	return d.Err != "" || d.ReadOnly || d.Free < diskFloor || d.Inodes > 0 && d.InodesFree < inodeFloor
}

const (
	diskFloor  = 16 << 20
	inodeFloor = 64
)

// Evidence is the known facts about a kubelet at one look.
type Evidence struct {
	Process Fact[Process] `json:"process"`
	// Healthz is the kubelet's /healthz on its loopback port. Parts are the health checks of the
	// kubelet's server, by name: ping, log, syncloop.
	Healthz Fact[Answer]            `json:"healthz"`
	Parts   map[string]Fact[Answer] `json:"parts,omitempty"`
	Lease   Fact[Lease]             `json:"lease"`
	PLEG    Fact[PLEG]              `json:"pleg"`
	// Operations are the kubelet's own requests to the runtime; Runtime is the runtime's answer to the
	// guard.
	Operations Fact[Operations] `json:"operations"`
	Runtime    Fact[Answer]     `json:"runtime"`
	// Sources are what the kubelet must hear from, by name, as it knows it itself: the pods of the API, the manifests,
	// the runtime.
	Sources map[string]Fact[Answer] `json:"sources,omitempty"`
	Behind  Fact[Behind]            `json:"behind"`
	// Lists is whether the runtime answers the audit's lists of containers, which hang where Status does not.
	Lists Fact[Answer] `json:"lists"`
	// APIServer is whether it answers from here. Writes is whether it accepts a write of the lease from here, as a dry run;
	// Requests are the kubelet's own writes.
	APIServer Fact[Answer]   `json:"apiServer"`
	Writes    Fact[Answer]   `json:"writes"`
	Requests  Fact[Requests] `json:"requests"`
	Disk      Fact[Disk]     `json:"disk"`
	// Certificate is when the kubelet's client certificate expires.
	Certificate Fact[time.Time] `json:"certificate"`
	// Starts and Certificates are from the kubelet's metrics; no verdict follows from them.
	Starts       Fact[time.Duration] `json:"starts"` // how long pods took to start, in the mean
	Certificates Fact[Certificates]  `json:"certificates"`
	// ShuttingDown: the machine goes down.
	ShuttingDown Fact[bool] `json:"shuttingDown"`
	// Maintenance comes from the Node's annotation.
	Maintenance Fact[Maintenance] `json:"maintenance"`
}
