// Package record is the history of a campaign: what was called, requested, answered and stored, in order, as lines of JSON.
//
//	call ─► return        of the manager, written by the agent's process
//	request               of the agent, with what the server and what the agent was answered, written by the gateway
//	version, gone         of a pod in the API, written by a watch of an administrator that no fault touches
//	foreign               a write of another writer
//	created, remove       written by the campaign: a pod was created, its deletion is requested
//	fault, want           written by the campaign
//	look                  what the manager says of itself: Pending, Flush, its resources
package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// Kind is what a record is about.
type Kind string

const (
	Created Kind = "created" // a pod: UID, Name
	Call    Kind = "call"    // of the manager begins: Agent, ID, Verb, UID, Facts
	Return  Kind = "return"  // of the call ID: Err, Warning, Kept, Over
	Request Kind = "request" // Agent, Verb, UID, Name, Code, Sent, Fault; Facts and RV of the answered pod
	Version Kind = "version" // of a pod in the API: UID, Name, RV, Facts
	Remove  Kind = "remove"  // the deletion of a pod is requested: UID, Name
	Gone    Kind = "gone"    // the pod is not in the API any more: UID, Name
	Foreign Kind = "foreign" // a write of the condition Gate: UID, Facts.Gate, Err
	Fault   Kind = "fault"   // Fault; Verb is begin or end
	Started Kind = "started" // a process of the agent: Agent
	Ended   Kind = "ended"   // a process of the agent; Err: not by the campaign's will
	Want    Kind = "want"    // what the API has Within of this moment: UID, Facts, or Absent; Fault is why so late
	Look    Kind = "look"    // Since, Flushed, Pending, Measures
	Mark    Kind = "mark"    // a moment
)

// Begin and End are the verbs of a Fault. Restored is the Fault of a server that was restored from a backup, NetworkRestarted that of a network that did
// not end a fault.
const (
	Begin            = "begin"
	End              = "end"
	Restored         = "server restored"
	NetworkRestarted = "network restarted"
)

// Verbs of calls.
const (
	Run       = "run"       // SetPodStatus, running
	Flip      = "flip"      // SetContainerReadiness
	Exit      = "exit"      // SetPodStatus, all containers have ended
	Evict     = "evict"     // SetPodStatus, Failed and nothing of the containers
	Terminate = "terminate" // TerminatePod
)

// Facts are what is compared of a pod.
type Facts struct {
	Number   int         `json:"n,omitempty"` // of the report
	Phase    v1.PodPhase `json:"phase,omitempty"`
	Ready    bool        `json:"ready,omitempty"`
	Running  int         `json:"running,omitempty"`  // how many containers run
	Exit     int32       `json:"exit,omitempty"`     // code of the container, if it has ended
	Gate     int         `json:"gate,omitempty"`     // number in the condition Gate, which another writer owns
	Deleting bool        `json:"deleting,omitempty"` // a deletion was requested
}

// Record is one line of a history. Which fields it has, its Kind says.
type Record struct {
	At       int64            `json:"at"` // nanoseconds since 1970
	Kind     Kind             `json:"kind"`
	Agent    int              `json:"agent,omitempty"` // number of the process
	ID       int64            `json:"id,omitempty"`
	Verb     string           `json:"verb,omitempty"`
	UID      string           `json:"uid,omitempty"`
	Name     string           `json:"name,omitempty"`
	RV       uint64           `json:"rv,omitempty"`
	Facts    *Facts           `json:"facts,omitempty"`
	Code     int              `json:"code,omitempty"` // of the server's answer; 0: there was none
	Sent     int              `json:"sent,omitempty"` // status code that the agent was sent; 0: none
	Fault    string           `json:"fault,omitempty"`
	Err      string           `json:"err,omitempty"`
	Warning  bool             `json:"warning,omitempty"` // the report was stored, Err says but for what
	Kept     bool             `json:"kept,omitempty"`    // the manager remembers the report beyond its process
	Over     bool             `json:"over,omitempty"`    // the manager knows the end of a pod that was reported as running
	Absent   bool             `json:"absent,omitempty"`
	Within   time.Duration    `json:"within,omitempty"`
	Since    int64            `json:"since,omitempty"` // when the look began
	Flushed  bool             `json:"flushed,omitempty"`
	Pending  []string         `json:"pending,omitempty"` // UIDs
	Measures map[string]int64 `json:"measures,omitempty"`
}

// String is a record as a person reads it.
func (r *Record) String() string {
	text := []string{time.Unix(0, r.At).UTC().Format("15:04:05.000000"), string(r.Kind)}
	add := func(name string, is bool, value any) {
		if is {
			text = append(text, fmt.Sprintf("%s=%v", name, value))
		}
	}
	add("agent", r.Agent > 0, r.Agent)
	add("verb", r.Verb != "", r.Verb)
	add("fault", r.Fault != "", r.Fault)
	add("pod", r.Name != "", r.Name)
	add("uid", r.UID != "", r.UID)
	add("version", r.RV > 0, r.RV)
	if r.Facts != nil {
		text = append(text, fmt.Sprintf("%+v", *r.Facts))
	}
	add("server", r.Kind == Request, r.Code)
	add("answered", r.Kind == Request, r.Sent)
	add("absent", r.Absent, true)
	add("within", r.Within > 0, r.Within)
	add("flushed", r.Kind == Look, r.Flushed)
	add("pending", r.Kind == Look, len(r.Pending))
	add("err", r.Err != "", r.Err)
	return strings.Join(text, " ")
}

// Gate is the condition that another writer owns.
const Gate v1.PodConditionType = "example.com/gate"

// reportPrefix begins the message of a status; the number of the report follows.
const reportPrefix = "report "

// Message is the message of the status with the number.
func Message(number int) string { return reportPrefix + strconv.Itoa(number) }

// FactsOf reads a pod of the API.
func FactsOf(pod *v1.Pod) *Facts {
	f := &Facts{Phase: pod.Status.Phase, Deleting: pod.DeletionTimestamp != nil}
	if number, ok := strings.CutPrefix(pod.Status.Message, reportPrefix); ok {
		f.Number, _ = strconv.Atoi(number)
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			f.Running++
		case c.State.Terminated != nil:
			f.Exit = c.State.Terminated.ExitCode
		}
	}
	ready := podstatus.FindCondition(pod.Status.Conditions, v1.PodReady)
	f.Ready = ready != nil && ready.Status == v1.ConditionTrue
	if gate := podstatus.FindCondition(pod.Status.Conditions, Gate); gate != nil {
		f.Gate, _ = strconv.Atoi(gate.Message)
	}
	return f
}

// VersionOf reads the resource version of a pod; 0 if there is none.
func VersionOf(pod *v1.Pod) uint64 {
	version, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	return version
}

// Writer appends records to a history. Its methods may be called from any goroutine.
type Writer struct {
	mu  sync.Mutex // guards what follows
	out *bufio.Writer
	err error
}

// NewWriter writes a line per record; Flush writes what is buffered.
func NewWriter(out io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(out, buffer)} }

// Now is the time of a record that is added now. The kernel's clock is read, since the clock of the process may be stepped (package clockstep).
func Now() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &now) // always there
	return now.Nano()
}

// buffer is what a Writer keeps back at most.
const buffer = 1 << 16

// Flush writes what is buffered, and returns what has gone wrong with the writes until now.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.err, w.out.Flush())
}

// Add writes a record, with the time of now unless it has one.
func (w *Writer) Add(r Record) {
	if r.At == 0 {
		r.At = Now()
	}
	line, _ := json.Marshal(r) // has nothing that cannot be encoded
	w.Line(append(line, '\n'))
}

// Line writes a record that another process has made.
func (w *Writer) Line(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(line)
	w.err = errors.Join(w.err, err)
}

// Read reads a history and orders it by time. A last line that was cut short is left out.
func Read(in io.Reader) ([]Record, error) {
	var all []Record
	known := map[string]string{} // texts that repeat are kept once: a history of hours has millions of records
	once := func(text *string) {
		if kept, ok := known[*text]; ok {
			*text = kept
		} else {
			known[*text] = *text
		}
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("history: line %d: %w", len(all)+1, err)
		}
		for _, text := range []*string{(*string)(&r.Kind), &r.Verb, &r.UID, &r.Name, &r.Fault} {
			once(text)
		}
		for i := range r.Pending {
			once(&r.Pending[i])
		}
		all = append(all, r)
	}
	Sort(all)
	return all, nil
}

// Sort orders records by time; those of one moment stay as they are.
func Sort(all []Record) {
	slices.SortStableFunc(all, func(a, b Record) int { return int(min(max(a.At-b.At, -1), 1)) })
}

// Any is the Number of facts that are true with any report.
const Any = -1

// Agrees reports whether the API's facts are those that the node wants.
func (f *Facts) Agrees(api *Facts) bool {
	return (f.Number == api.Number || f.Number == Any) && f.Phase == api.Phase && f.Ready == api.Ready
}
