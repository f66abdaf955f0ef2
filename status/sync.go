package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/podstatus"
)

// outcome is the result of a turn for the engine.
type outcome struct {
	uid      types.UID
	requests int
	// again: serve the pod once more, after wait if that is not zero.
	again   bool
	wait    time.Duration
	urgency urgency
	// pause is how long the API server has asked for a pause.
	pause time.Duration
	// failure is the failure of the last request. Succeeded: a request has succeeded, and latency
	// is the duration of the last successful request.
	failure   failure
	succeeded bool
	latency   time.Duration
	// deletes: the last request was to delete the pod. Refusal: the server has refused what was
	// to be written, by the fault of the pod alone.
	deletes bool
	refusal bool
	// grave: readiness or phase in the API are not those of the node. Lasting: the request failed for a reason that
	// another try of the same pod rarely removes.
	grave, lasting bool
	// asked is how long the server has asked for a pause with regard to this pod only.
	asked time.Duration
}

// syncPod takes one turn for a pod: it makes the API's pod equal to the cached status, with
// one request where that is possible, or deletes the pod if it has finished. It runs in a
// goroutine of its own; there is never more than one for a pod.
// Alone: as far as is known, the server fails with this pod only.
func (m *Manager) syncPod(ctx context.Context, uid types.UID, alone bool) outcome {
	t := &turn{m: m, alone: alone, outcome: outcome{uid: uid}}
	p, why, ok := m.newPlan(uid, time.Now())
	switch {
	case !ok:
	case p == nil:
		// Nothing is tried before the pod is observed or changed.
		m.cache.failed(uid, nil, why, goneBackoff, time.Now())
	default:
		t.run(ctx, p)
		if t.failure == none && m.cache.load(uid) != p.snapshot {
			t.wait = 0 // what the turn waits for is of an older status
		}
	}
	return t.outcome
}

// turn is the state of one turn of a pod.
type turn struct {
	m     *Manager
	alone bool
	outcome
	// read: the base comes from the API server in this very turn; wrote: the
	// turn has changed the API's pod.
	read, wrote bool
	// contradicted: the API server has denied the base in this turn.
	contradicted bool
	// altered: the API server has stored something else than was sent: a webhook
	// has changed it, or a writer was faster than the base.
	altered bool
	// leftOut are the fields that are not sent because the server refuses them, and refused
	// is what it has refused in this turn.
	leftOut []string
	refused *refusal
	// decision is by what the API's pod differs after this turn; overruledNow: the server has
	// decided so in this turn.
	decision     decision
	overruledNow bool
}

func (t *turn) run(ctx context.Context, p *plan) {
	if p.fresh && t.m.ending(p) {
		t.recheckLater(p, waitEnding, withdrawal)
		return
	}
	if !p.base.known() || p.look || t.m.opts.AlwaysRead && !p.onlyDeletes() {
		if !t.look(ctx, p) {
			return
		}
	}
	if t.m.overtaken(p.pod, p.snapshot, p.base.status) {
		t.urgency, t.again = p.urgency(), true
		return
	}
	t.leftOut = p.leftOut
	for t.write(ctx, p) {
		// The API server contradicted the base: look once, and write again.
		t.contradicted = true
		t.m.cache.dropBase(p.uid)
		if !t.look(ctx, p) {
			return
		}
	}
}

// look reads the API's pod as the base of the write.
func (t *turn) look(ctx context.Context, p *plan) bool {
	pod, err := request(ctx, t, "get", func(ctx context.Context) (*v1.Pod, error) {
		pod, err := t.m.opts.Client.Get(ctx, p.namespace, p.name)
		if err == nil && (pod == nil || pod.UID == "") {
			err = notThePod(pod, p.target)
		}
		return pod, err
	})
	t.read = true
	switch {
	case err != nil && hintsGone(err):
		found, there := t.resolve(ctx, p, err, nil)
		if !there {
			return false
		}
		pod = found
	case err != nil:
		t.retry(p, err)
		return false
	case pod.UID != p.target:
		// Another pod has the name now, and this one is gone. The cached status stays: it may
		// be that of a static pod whose new mirror is not observed yet (#137309).
		t.gone(p, nil)
		return false
	}
	t.rebase(p, pod)
	return true
}

// rebase makes an answer of the API server the base.
func (t *turn) rebase(p *plan, pod *v1.Pod) {
	p.asked = true
	p.base = baseOf(pod)
	p.base.status = pod.Status.DeepCopy() // and not the whole pod with it
	// What was read is the newest there is, also for later turns if this one's write fails.
	if t.m.cache.keepBase(p, p.base) {
		t.m.historyChanged(p.base.revision, p.uid)
	}
	p.began = p.base
}

// write sends what the API's pod lacks. It reports whether the base proved to be wrong,
// so that it is worth looking.
func (t *turn) write(ctx context.Context, p *plan) (contradicted bool) {
	couldRun := t.m.couldRun(p)
	for {
		merged, patch, err := t.build(p, couldRun)
		if err != nil {
			t.retry(p, fmt.Errorf("build patch: %w", err))
			return false
		}
		if patch == nil {
			if p.decision.status != nil && t.decision.status == nil {
				t.m.cache.endDecision(p.uid)
			}
			t.accepted(ctx, p, p.base, couldRun)
			return false
		}
		if t.waitsWithDetails(p, merged) {
			return false
		}
		if wait := p.fight.wait(p, merged, time.Now(), t.m.cache.jitter()); wait > 0 {
			t.m.cache.waitUntil(p.uid, waitFight, time.Now().Add(wait))
			t.again, t.wait, t.urgency = true, wait, reconcileUrgency(p.base.status, &p.status)
			return false
		}
		answer, err := t.patch(ctx, p, patch, p.base.revision)
		switch {
		case err == nil:
			t.taken(ctx, p, patch, answer, merged, couldRun)
			return false
		case contradicts(err) && !t.read:
			return true
		case t.contended(p, err):
			t.writeApart(ctx, p, couldRun)
			return false
		case !contradicts(err) && t.refuse(p, err, merged):
			// The rest is sent without what is refused.
		default:
			t.rejected(ctx, p, err)
			return false
		}
	}
}

// build returns the status that the API's pod should have, and the patch for that: nil if it has
// it, or if the server has decided on another one.
func (t *turn) build(p *plan, couldRun bool) (*v1.PodStatus, []byte, error) {
	api := p.base.status
	if p.static && podstatus.IsTerminal(api.Phase) && api.Phase != p.status.Phase && !(couldRun && podstatus.IsTerminal(p.status.Phase)) {
		// The mirror shows the end of an earlier life of the static pod.
		earlier := *api
		earlier.Phase, earlier.Reason, earlier.Message = "", "", ""
		api = &earlier
	}
	merged := t.m.owns.Merge(p.pod, api, &p.status, couldRun, time.Now())
	for _, field := range t.leftOut {
		leaveOut(&merged, p.base.status, field)
	}
	patch, err := t.m.owns.PatchAt(p.target, p.guard(), p.base.status, &merged)
	if patch != nil && p.decision.holds(p.version, couldRun, time.Now()) && !t.m.owns.NeedsReconcile(p.pod, p.base.status, p.decision.status) {
		patch, t.decision = nil, p.decision
	}
	if patch != nil && t.diesWithDetails(p, &merged) {
		patch = nil
	}
	return &merged, patch, err
}

// guard is the resource version that the API's pod must still have for a write to be taken, "" if resource versions
// cannot be compared. A write that the server carries out late, after the manager has given up waiting for the answer and a
// newer write was stored, fails then: its version is older. And no write replaces a terminal phase that its base does not show.
func (p *plan) guard() string {
	if p.base.revision == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(p.base.revision), 10)
}

// taken handles the answer to a write that the API server has accepted.
func (t *turn) taken(ctx context.Context, p *plan, patch []byte, answer *v1.Pod, merged *v1.PodStatus, couldRun bool) {
	t.wrote, p.asked = true, true
	t.m.recordWrite(p)
	api := baseOf(answer).compact(t.m.owns, p.target, merged, &p.status)
	t.altered = api.status != merged && api.status != &p.status
	switch {
	case t.altered && t.overruled(p, patch, api, merged):
		t.altered = false
		t.decide(p, api, merged, couldRun)
	case !t.altered:
		now := time.Now()
		t.m.retryOverruled(slices.Values(t.m.cache.storedAsSent(p.uid, now)), now)
	}
	t.accepted(ctx, p, api, couldRun)
}

// rejected handles a write that the API server has rejected, or that did not reach it.
func (t *turn) rejected(ctx context.Context, p *plan, err error) {
	switch {
	case fromServer(err) && apierrors.IsNotFound(err):
		if _, there := t.resolve(ctx, p, err, nil); there {
			t.retry(p, err)
		}
	case fromServer(err) && apierrors.IsForbidden(err):
		t.denied(ctx, p, err)
	default:
		t.retry(p, err)
	}
}

// accepted ends a turn after which the API server has the status.
func (t *turn) accepted(ctx context.Context, p *plan, api base, couldRun bool) {
	m := t.m
	withheld := !podstatus.IsTerminal(api.status.Phase) || p.static && api.status.Phase != p.status.Phase
	if couldRun && podstatus.IsTerminal(p.status.Phase) && withheld {
		// The rest of the status is there. The phase follows when the containers have stopped.
		if m.cache.keepBase(p, api) {
			m.historyChanged(api.revision, p.uid)
		}
		t.recheckLater(p, waitWithheld, withdrawal)
		return
	}
	deletable, overruled := api.ended && p.finished, t.decision.status != nil
	if overruled && t.decision.grave && !deletable {
		if m.cache.keepBase(p, api) {
			m.historyChanged(api.revision, p.uid)
		}
		t.tryOverruledLater(p)
		return
	}
	if len(t.leftOut) > 0 && isReady(api.status) != isReady(&p.status) && !deletable && !podstatus.IsTerminal(api.status.Phase) {
		// What the server refuses is readiness itself, or makes it differ: the version is not accepted.
		if m.cache.keepBase(p, api) {
			m.historyChanged(api.revision, p.uid)
		}
		t.tryRefusedLater(p, true)
		return
	}
	if wait := m.cache.mayRegress(p, api.revision, t.read, time.Now()); wait > 0 && !deletable {
		if m.cache.keepBase(p, api) {
			m.historyChanged(api.revision, p.uid)
		}
		m.cache.waitUntil(p.uid, waitUnanswered, time.Now().Add(wait))
		t.again, t.wait, t.urgency = true, wait, background
		return
	}
	a := m.cache.accept(p, api, deletable && !t.wrote || len(t.leftOut) > 0 || overruled)
	m.metrics.accepted(a, t.wrote)
	if a.undone {
		m.historyChanged(api.revision, p.uid)
	}
	if t.altered || a.drifted {
		t.again, t.urgency = true, reconcileUrgency(api.status, &p.status)
		m.cache.foreignWrite(p.uid, time.Now())
	} else {
		m.cache.settle(p.uid, p.version, api)
	}
	switch {
	case m.opts.Journal == nil || a.changes == 0 && !t.wrote:
	case p.final() && !p.static && !podstatus.IsTerminal(api.status.Phase):
		// A write that was taken need not have brought the end along: it is a difference to
		// what the server may have lost in a restore.
	default:
		if p.isEnd() {
			m.endAccepted(p)
		}
		if a.changes > 0 {
			m.forgetEnds(p)
		}
	}
	switch {
	case deletable:
		t.deletePod(ctx, p)
	case len(t.leftOut) > 0:
		t.tryRefusedLater(p, false)
	case overruled:
		t.tryOverruledLater(p)
	}
}

// onlyDeletes reports whether all that the turn is for is to delete the pod. Nothing needs to be
// read for that.
func (p *plan) onlyDeletes() bool {
	return p.finished && p.base.known() && p.base.ended && p.accepted == p.version
}

// deletePod removes a finished pod from the API. It needs a request of its own, and so a
// turn of its own if this one has written already.
func (t *turn) deletePod(ctx context.Context, p *plan) {
	m := t.m
	if t.wrote {
		t.again, t.urgency = true, withdrawal
		return
	}
	if m.opts.Reclaim != nil && !m.opts.Reclaim.ResourcesReclaimed(p.pod, &p.status) {
		t.recheckLater(p, waitUnreclaimed, withdrawal)
		return
	}
	t.deletes = true
	_, err := request(ctx, t, "delete", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.opts.Client.Delete(ctx, p.namespace, p.name, p.target)
	})
	t.deleted(ctx, p, err)
}

// recheckLater looks at the pod again in a while: something on this node has to happen first. A report during the turn
// may be it.
func (t *turn) recheckLater(p *plan, why waitReason, u urgency) {
	t.wait = t.m.cache.failed(p.uid, nil, why, recheckBackoff, time.Now())
	t.again, t.urgency = true, u
}

// retry tries the pod again on its own schedule, and no earlier than the server asked for.
func (t *turn) retry(p *plan, err error) { t.retryOn(retryBackoff, p, err) }

func (t *turn) retryOn(schedule backoff.Schedule, p *plan, err error) {
	m := t.m
	t.wait = m.cache.failed(p.uid, err, waitNone, schedule, time.Now())
	why := failureOf(err)
	t.pause, t.refusal = pauseAsked(err), why == refused || why == denied
	if why == denied {
		t.failure = denied // whatever the server has answered since, to whether the pod is there
	}
	if t.pause > t.wait {
		t.wait = t.pause
		m.cache.setNextTry(p.uid, time.Now().Add(t.wait))
	}
	t.again, t.urgency = true, p.urgency()
	t.grave, t.lasting = p.base.known() && graveDifference(p.base.status, &p.status), why == internal || tooLarge(err)
	m.metrics.retries.WithLabelValues(reasonOf(err)).Inc()
	m.opts.Logger.Warn("status update failed, will retry", "pod", p.podName(), "uid", p.target, "version", p.version, "wait", t.wait, "err", err)
}

// urgency of a pod that failed: its change is as urgent as before.
func (p *plan) urgency() urgency {
	if !p.base.known() {
		return normal
	}
	return urgencyOf(p.base.status, &p.status, p.finished)
}

func (s *snapshot) podName() string { return s.namespace + "/" + s.name }

// request makes one request, bounded in time and counted.
func request[T any](ctx context.Context, t *turn, verb string, send func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, t.m.opts.RequestTimeout)
	defer cancel()
	t.requests++
	began := time.Now()
	answer, err := send(ctx)
	t.recordResult(err, time.Since(began))
	t.m.metrics.requests.WithLabelValues(verb, reasonOf(err)).Inc()
	return answer, err
}

// patch sends a strategic merge patch to the pod's status, with a resource version as precondition, or with none, 0.
func (t *turn) patch(ctx context.Context, p *plan, patch []byte, guard revision) (*v1.Pod, error) {
	return t.patchBy(ctx, p, patch, guard, t.m.opts.Client.PatchStatus)
}

// patchBy sends a patch of any type. An answer that is not the pod is an error.
func (t *turn) patchBy(ctx context.Context, p *plan, patch []byte, guard revision, send func(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error)) (*v1.Pod, error) {
	pod, err := request(ctx, t, "patch", func(ctx context.Context) (*v1.Pod, error) {
		pod, err := send(ctx, p.namespace, p.name, patch)
		if err == nil && (pod == nil || pod.UID != p.target) {
			err = notThePod(pod, p.target)
		}
		return pod, err
	})
	if err != nil && mayBeLate(err) {
		t.m.cache.noteUnanswered(p, guard, time.Now())
	}
	return pod, err
}

// notThePod is the error of a 200 that does not have the pod: something before the server has answered.
func notThePod(got *v1.Pod, want types.UID) error {
	if got == nil {
		return fmt.Errorf("the client has returned neither the pod with UID %q nor an error", want)
	}
	return fmt.Errorf("the answer is not the pod: it has UID %q, want %q", got.UID, want)
}

// contradicts reports whether an error means that the base is wrong: the pod does not exist, or has
// another UID. To a patch with another UID, the server answers that the UID cannot be changed.
func contradicts(err error) bool {
	if !fromServer(err) {
		return false
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true
	}
	_, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.uid")
}

// reasonOf names an error in few words, for a metric.
func reasonOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, errOverruled):
		return "overruled"
	case errors.Is(err, errContended):
		return string(metav1.StatusReasonConflict)
	}
	switch reason := apierrors.ReasonForError(err); {
	case reason == "":
		return "unreachable"
	case knownReasons[reason]:
		return string(reason)
	default:
		return "other" // a webhook may say anything
	}
}

// knownReasons are the reasons that may be the value of a metric label.
var knownReasons = func() map[metav1.StatusReason]bool {
	known := make(map[metav1.StatusReason]bool)
	for _, reason := range []metav1.StatusReason{
		metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound,
		metav1.StatusReasonAlreadyExists, metav1.StatusReasonConflict, metav1.StatusReasonGone,
		metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout,
		metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest, metav1.StatusReasonMethodNotAllowed,
		metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonInternalError,
		metav1.StatusReasonExpired, metav1.StatusReasonServiceUnavailable,
	} {
		known[reason] = true
	}
	return known
}()
