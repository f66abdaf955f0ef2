package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/audit"
)

// Sides reads the sides of the node again.
type Sides interface {
	// Look returns facts for which each side was queried after the call.
	Look(ctx context.Context) (audit.Facts, error)
}

// API is the part of the API server that repairs use, past any cache.
type API interface {
	// Get returns the pod of the name as the server has it now.
	Get(ctx context.Context, namespace, name string) (*v1.Pod, error)
	// List returns all pods of the node as the server has them now.
	List(ctx context.Context) ([]v1.Pod, error)
	// PatchStatus applies a strategic merge patch to the status of the pod, as [audit.RepairManager].
	PatchStatus(ctx context.Context, namespace, name string, patch []byte) error
}

// Runtime is the part of the container runtime that repairs use.
type Runtime interface {
	// Stop ends a container, by force after the grace.
	Stop(ctx context.Context, id string, grace time.Duration) error
	Remove(ctx context.Context, id string) error
}

// Options configure a [Repairer].
type Options struct {
	Sides   Sides
	API     API
	Runtime Runtime
	// Grace is how long a container may take to stop; 30 s if zero.
	Grace time.Duration
	// Now is the time; time.Now if nil.
	Now func() time.Time
}

// Repairer does the steps of a plan. Its methods are called one after the other.
type Repairer struct {
	o Options
}

// New returns a Repairer. Sides, API and Runtime are required.
func New(o Options) (*Repairer, error) {
	if o.Sides == nil || o.API == nil || o.Runtime == nil {
		return nil, errors.New("repair: Sides, API and Runtime are required")
	}
	if o.Grace == 0 {
		o.Grace = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Repairer{o}, nil
}

// Outcome is the result of a step.
type Outcome string

// The outcomes.
const (
	Repaired Outcome = "repaired"
	DryRun   Outcome = "dry-run" // it would have been repaired
	Skipped  Outcome = "skipped" // there was nothing to repair any more
	Failed   Outcome = "failed"
)

// Result is one attempt.
type Result struct {
	Step
	At      time.Time
	Outcome Outcome
	// Did is the repair that was made, or would have been made; Reason is why it was not made.
	Did, Reason string
	Event       Event
	// Line is the attempt in one line, for the audit log.
	Line string
}

// Event is the Event to record about the pod.
type Event struct {
	Type, Reason, Message string
}

// Past returns the attempt for later plans. A skipped repair does not count.
func (r Result) Past() (Past, bool) {
	return Past{At: r.At, Kind: r.Kind, Pod: r.Pod}, r.Outcome != Skipped
}

// errSkip is why there is nothing to repair any more.
type errSkip struct{ why string }

func (e errSkip) Error() string { return e.why }

func skip(format string, args ...any) error { return errSkip{fmt.Sprintf(format, args...)} }

// Do tries one step. Do reads all sides again first, and does nothing if the difference is gone.
func (r *Repairer) Do(ctx context.Context, s Step) Result {
	result := Result{Step: s, At: r.o.Now()}
	did, err := r.try(ctx, s)
	result.Did = did
	var skipped errSkip
	switch {
	case errors.As(err, &skipped):
		result.Outcome, result.Reason = Skipped, skipped.why
	case err != nil:
		result.Outcome, result.Reason = Failed, err.Error()
	case s.DryRun:
		result.Outcome = DryRun
	default:
		result.Outcome = Repaired
	}
	result.describe()
	return result
}

func (r *Repairer) try(ctx context.Context, s Step) (string, error) {
	facts, err := r.o.Sides.Look(ctx)
	if err != nil {
		return "", fmt.Errorf("look again: %w", err)
	}
	found := slices.ContainsFunc(audit.Compare(facts), func(d audit.Difference) bool {
		return d.Kind == s.Kind && d.Pod.UID == s.Pod.UID && d.Container == s.Container && d.Repair
	})
	if !found {
		return "", skip("the difference is gone")
	}
	if s.Kind == audit.ContainerWithoutPod {
		return r.removeContainers(ctx, s, facts)
	}
	return r.writeStatus(ctx, s, facts)
}

// kubeletDead returns an error unless the kubelet has been dead for long enough, by all that is known: it
// does not answer, its lease is stale, and its process is gone or stopped.
func (r *Repairer) kubeletDead(s Step, f audit.Facts) error {
	switch {
	case f.KubeletAnswer.Known():
		return skip("the kubelet answers again")
	case silentFor(f.KubeletAnswer, f.Now) < s.KubeletDead:
		return skip("the kubelet has been silent for less than %s", s.KubeletDead)
	case !f.MachineAnswer.Known():
		return skip("whether the kubelet runs is not known")
	case f.Process == nil && !f.ProcessKnown:
		return skip("whether the kubelet runs is not known: the processes of the machine are not seen")
	case f.Process != nil && !f.Process.Stopped:
		return skip("the kubelet runs (process %d)", f.Process.PID)
	case f.Lease == nil || f.Lease.Spec.RenewTime == nil || f.Now.Sub(f.Lease.Spec.RenewTime.Time) < s.KubeletDead:
		return skip("the lease of the node was renewed less than %s ago, or is not known", s.KubeletDead)
	}
	return nil
}

func (r *Result) describe() {
	name := r.Pod.Namespace + "/" + r.Pod.Name
	r.Event = Event{Type: v1.EventTypeNormal, Reason: "StatusDriftRepaired", Message: r.Did}
	switch r.Outcome {
	case Failed:
		r.Event = Event{Type: v1.EventTypeWarning, Reason: "StatusDriftRepairFailed", Message: "Could not repair: " + r.Reason}
	case DryRun:
		r.Event.Message = "Dry run, not done: " + r.Did
	case Skipped:
		r.Event = Event{} // nothing has happened
	}
	r.Line = fmt.Sprintf("time=%s repair=%s pod=%s uid=%s container=%q outcome=%s did=%q reason=%q why=%q",
		r.At.UTC().Format(time.RFC3339), r.Kind, name, r.Pod.UID, r.Container, r.Outcome, r.Did, r.Reason, r.Why)
}
