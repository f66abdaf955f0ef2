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

// A write of a phase is guarded by the resource version of the base, so that it never goes over a
// terminal phase which the base does not show, see [plan.guard]. But any change of the pod is
// another version: a writer that is busy with an annotation, faster than the pod can be read and
// written, would keep the phase from the API for as long as it goes on. After the second conflict of a
// turn, the status is therefore sent in two parts:
//
//   - The rest, readiness included, needs no guard. It goes first, so that a pod is never terminal
//     and ready. Its answer is the newest copy of the pod.
//   - The phase follows as a JSON patch that tests the phase and the UID, and nothing else. Only a
//     writer of the phase makes it fail.
//
// With a Client that is no [JSONPatcher], a terminal phase is then written without a guard if the answer
// to the first part shows none. Another end that is stored within that one round trip would be
// replaced by this one; the kubelet takes that risk with every write. A phase that is not
// terminal takes no such risk, because that could undo an end: it is tried until no other writer comes between.

// JSONPatcher is a Client that can send JSON patches. The client of [NewClient] is one.
type JSONPatcher interface {
	// JSONPatchStatus sends a JSON patch (RFC 6902) to the pod's status and returns the pod as it is
	// then. The patch tests the UID that the pod must have.
	JSONPatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error)
}

// contended reports whether a write has failed because others change the pod faster than it can be
// read and written.
func (t *turn) contended(p *plan, merged *v1.PodStatus, err error) bool {
	return t.read && p.guard(merged) != "" && fromServer(err) && apierrors.IsConflict(err)
}

// writeApart sends the status in two parts, for which no version of the pod is needed.
func (t *turn) writeApart(ctx context.Context, p *plan, couldRun bool) {
	for {
		merged, _, err := t.build(p, couldRun)
		if err == nil {
			err = t.writeRest(ctx, p, merged)
		}
		if err == nil {
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
	case p.guard(merged) == "": // another writer has ended the pod, and its phase stays
		t.again, t.urgency = true, p.urgency()
	default:
		t.writePhase(ctx, p, merged, patch, couldRun)
	}
}

// writeRest sends everything but the phase and what explains it. Its answer becomes the base.
func (t *turn) writeRest(ctx context.Context, p *plan, merged *v1.PodStatus) error {
	rest, shown := *merged, p.base.status
	rest.Phase, rest.Reason, rest.Message = shown.Phase, shown.Reason, shown.Message
	patch, err := t.m.owns.Patch(p.target, shown, &rest)
	if err != nil || patch == nil {
		return err
	}
	answer, err := request(ctx, t, "patch", func(ctx context.Context) (*v1.Pod, error) {
		return t.m.opts.Client.PatchStatus(ctx, p.namespace, p.name, patch)
	})
	if err != nil {
		return err
	}
	t.wrote = true
	t.rebase(p, answer)
	return nil
}

// writePhase sends the phase and what explains it.
func (t *turn) writePhase(ctx context.Context, p *plan, merged *v1.PodStatus, patch []byte, couldRun bool) {
	var send func(context.Context) (*v1.Pod, error)
	patcher, precise := t.m.opts.Client.(JSONPatcher)
	switch {
	case precise:
		send = func(ctx context.Context) (*v1.Pod, error) {
			return patcher.JSONPatchStatus(ctx, p.namespace, p.name, phasePatch(p, merged))
		}
	case podstatus.IsTerminal(merged.Phase):
		unguarded, err := t.m.owns.Patch(p.target, p.base.status, merged)
		if err != nil {
			t.retry(p, err)
			return
		}
		send = func(ctx context.Context) (*v1.Pod, error) {
			return t.m.opts.Client.PatchStatus(ctx, p.namespace, p.name, unguarded)
		}
	default:
		t.retryOn(lagBackoff, p, errContended)
		return
	}
	answer, err := request(ctx, t, "patch", send)
	if err != nil {
		t.rejected(ctx, p, fmt.Errorf("phase alone: %w", err))
		return
	}
	t.taken(ctx, p, patch, answer, merged, couldRun)
}

var errContended = errors.New("other writers change the pod faster than it can be read and written")

// phasePatch is a JSON patch of the phase and what explains it, for the pod of this UID and with the phase of
// the base.
func phasePatch(p *plan, merged *v1.PodStatus) []byte {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	patch := []operation{
		{"test", "/metadata/uid", string(p.target)},
		{"test", "/status/phase", string(p.base.status.Phase)},
		{"add", "/status/phase", string(merged.Phase)},
		{"add", "/status/reason", merged.Reason},
		{"add", "/status/message", merged.Message},
	}
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // strings only
	}
	return text
}
