package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/podstatus"
)

// A write is guarded by the resource version of the base, so that it overwrites neither a terminal phase that
// is missing in the base nor a newer status, see [plan.guard]. But any change of the pod changes the
// resource version: a writer that updates an annotation faster than the pod can be read and written
// would block the status for as long as it continues. After the second conflict of a turn, the status
// is therefore sent in two parts:
//
//   - The rest, including readiness, needs no guard. It is sent first, so that a pod is never
//     terminal and ready. The response is the newest copy of the pod.
//   - The phase follows as a JSON patch that tests only the phase and the UID, so that only another
//     writer of the phase makes the patch fail.
//
// If the Client is not a [JSONPatcher], a terminal phase is then written without a guard if the response to the
// first part has no terminal phase. Another terminal phase stored within this round trip would be replaced; the
// kubelet takes this risk with every write. A phase that is not terminal is never written without a guard,
// because it could replace a terminal phase: the write is retried until no other writer interferes.

// JSONPatcher is a Client that can send JSON patches. The client of [NewClient] is a JSONPatcher.
type JSONPatcher interface {
	// JSONPatchStatus sends a JSON patch (RFC 6902) to the pod's status and returns the patched pod.
	// The patch tests the UID of the pod.
	JSONPatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error)
}

// contended reports whether a write has failed because others change the pod faster than it can be
// read and written.
func (t *turn) contended(p *plan, err error) bool {
	return t.read && p.guard() != "" && fromServer(err) && apierrors.IsConflict(err)
}

// changesPhase reports whether a write changes the phase, or what explains it, of a pod whose phase may be final. That of a
// static pod never is.
func (p *plan) changesPhase(merged *v1.PodStatus) bool {
	shown := p.base.status
	return !p.static && (merged.Phase != shown.Phase || merged.Reason != shown.Reason || merged.Message != shown.Message)
}

// writeApart sends the status in two parts, for which no version of the pod is needed, or in one if the phase is the API's.
func (t *turn) writeApart(ctx context.Context, p *plan, couldRun bool) {
	for {
		merged, _, err := t.build(p, couldRun)
		if err != nil {
			t.retry(p, fmt.Errorf("build patch: %w", err))
			return
		}
		rest, answer, err := t.writeRest(ctx, p, merged)
		if err == nil {
			if answer != nil && !p.changesPhase(merged) {
				t.taken(ctx, p, rest, answer, merged, couldRun)
				return
			}
			if answer != nil {
				t.wrote = true
				t.rebase(p, answer)
			}
			break
		}
		if contradicts(err) || !t.refuse(p, err, merged) {
			t.rejected(ctx, p, err)
			return
		}
	}
	merged, patch, err := t.build(p, couldRun)
	switch {
	case err != nil:
		t.retry(p, err)
	case patch == nil:
		t.accepted(ctx, p, p.base, couldRun)
	case !p.changesPhase(merged): // another writer has ended the pod, and its phase stays
		t.again, t.urgency = true, p.urgency()
	default:
		t.writePhase(ctx, p, merged, patch, couldRun)
	}
}

// writeRest sends everything but a change of the phase and what explains it. It returns what it has sent, nil if there was nothing.
func (t *turn) writeRest(ctx context.Context, p *plan, merged *v1.PodStatus) (patch []byte, answer *v1.Pod, err error) {
	rest, shown := *merged, p.base.status
	if p.changesPhase(merged) {
		rest.Phase, rest.Reason, rest.Message = shown.Phase, shown.Reason, shown.Message
	}
	patch, err = t.m.owns.Patch(p.target, shown, &rest)
	if err != nil || patch == nil {
		return nil, nil, err
	}
	answer, err = t.patch(ctx, p, patch, 0)
	return patch, answer, err
}

// writePhase sends the phase and what explains it.
func (t *turn) writePhase(ctx context.Context, p *plan, merged *v1.PodStatus, patch []byte, couldRun bool) {
	var answer *v1.Pod
	var err error
	patcher, precise := t.m.opts.Client.(JSONPatcher)
	switch {
	case precise:
		answer, err = t.patchBy(ctx, p, phasePatch(p, merged), 0, patcher.JSONPatchStatus)
	case podstatus.IsTerminal(merged.Phase):
		unguarded, buildErr := t.m.owns.Patch(p.target, p.base.status, merged)
		if buildErr != nil {
			t.retry(p, buildErr)
			return
		}
		answer, err = t.patch(ctx, p, unguarded, 0)
	default:
		t.retryOn(lagBackoff, p, errContended)
		return
	}
	if err != nil {
		t.rejected(ctx, p, fmt.Errorf("phase alone: %w", err))
		return
	}
	t.taken(ctx, p, patch, answer, merged, couldRun)
}

var errContended = errors.New("other writers change the pod faster than it can be read and written")

// phasePatch is a JSON patch of the phase and what explains it, for the pod of this UID and with the phase of
// the base. If the pod ends and is still ready there, because a webhook has kept it so, the conditions go with the
// phase.
func phasePatch(p *plan, merged *v1.PodStatus) []byte {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	patch := []operation{
		{"test", "/metadata/uid", p.target},
		{"test", "/status/phase", p.base.status.Phase},
		{"add", "/status/phase", merged.Phase},
		{"add", "/status/reason", merged.Reason},
		{"add", "/status/message", merged.Message},
	}
	if podstatus.IsTerminal(merged.Phase) && isReady(p.base.status) {
		patch = append(patch, operation{"test", "/status/conditions", p.base.status.Conditions},
			operation{"replace", "/status/conditions", merged.Conditions})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // plain values only
	}
	return text
}
