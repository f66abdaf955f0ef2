package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/alert/ruleset"
)

// cordon is the mark of a Node that takes no pods. Other marks are taints, key=value:effect.
const cordon = "unschedulable"

// MarkOf returns the mark that an action sets on the Node, or "".
func MarkOf(a *ruleset.Action) (string, error) {
	switch a.Kind {
	case ruleset.ActionCordon:
		return cordon, nil
	case ruleset.ActionTaint:
		_, err := ParseTaint(a.Taint)
		return a.Taint, err
	}
	return "", nil
}

func kindOf(mark string) ruleset.ActionKind {
	if mark == cordon {
		return ruleset.ActionCordon
	}
	return ruleset.ActionTaint
}

func taintOf(mark string) string {
	if mark == cordon {
		return ""
	}
	return mark
}

// ParseTaint reads KEY[=VALUE]:EFFECT.
func ParseTaint(text string) (v1.Taint, error) { return ruleset.ParseTaint(text) }

// NodeMarks sets taints and the cordon of one Node. A node's own credentials may not change its taints:
// NodeRestriction forbids it.
type NodeMarks struct {
	Client kubernetes.Interface
	Node   string
}

// Set implements [Marks].
func (m NodeMarks) Set(ctx context.Context, mark string) (changed bool, err error) {
	return m.change(ctx, mark, true)
}

// Unset implements [Marks].
func (m NodeMarks) Unset(ctx context.Context, mark string) error {
	_, err := m.change(ctx, mark, false)
	return err
}

func (m NodeMarks) change(ctx context.Context, mark string, want bool) (changed bool, err error) {
	node, err := m.Client.CoreV1().Nodes().Get(ctx, m.Node, metav1.GetOptions{})
	if err != nil {
		return false, mayPass("get node", err)
	}
	spec, err := marked(&node.Spec, mark, want)
	if err != nil || spec == nil {
		return false, err
	}
	// The resource version makes it fail if taints, a list that is written whole, have changed meanwhile.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion}, "spec": spec})
	if err != nil {
		return false, fmt.Errorf("actions: %w", err)
	}
	if _, err := m.Client.CoreV1().Nodes().Patch(ctx, m.Node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return false, mayPass("patch node", err)
	}
	return true, nil
}

// marked is what to write so that a Node has a mark, or not; nil if it is so.
func marked(spec *v1.NodeSpec, mark string, want bool) (map[string]any, error) {
	if mark == cordon {
		if spec.Unschedulable == want {
			return nil, nil
		}
		return map[string]any{"unschedulable": want}, nil
	}
	taint, err := ParseTaint(mark)
	if err != nil {
		return nil, fmt.Errorf("actions: %w", err)
	}
	at := slices.IndexFunc(spec.Taints, func(t v1.Taint) bool { return t.MatchTaint(&taint) })
	has := at >= 0 && spec.Taints[at].Value == taint.Value
	if has == want {
		return nil, nil
	}
	if want && at >= 0 { // a Node has one taint per key and effect, and this one is not ours to replace
		return nil, &RefusedError{fmt.Sprintf("the node has another taint of this key and effect: %s", spec.Taints[at].ToString())}
	}
	taints := slices.DeleteFunc(slices.Clone(spec.Taints), func(t v1.Taint) bool { return t.MatchTaint(&taint) })
	if want {
		taints = append(taints, taint)
	}
	return map[string]any{"taints": taints}, nil
}

// mayPass marks errors that the next try may not have.
func mayPass(what string, err error) error {
	wrapped := fmt.Errorf("actions: %s: %w", what, err)
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return &LaterError{wrapped} // the server did not answer
	}
	if apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) {
		return &LaterError{wrapped}
	}
	return wrapped
}
