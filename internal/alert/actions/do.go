package actions

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/webhook"
)

// Evict evicts the pod of an alert through the Eviction API, so that disruption budgets hold: an
// eviction that a budget forbids now is tried again later. A pod of the same name with another UID is
// not evicted.
func Evict(client kubernetes.Interface) Do {
	return func(ctx context.Context, r *engine.ActionRequest) (string, error) {
		alert := &r.Alert
		if alert.Pod == "" || alert.UID == "" {
			return "", &RefusedError{"the alert is about no pod"}
		}
		pod, err := client.CoreV1().Pods(alert.Namespace).Get(ctx, alert.Pod, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return "", &RefusedError{"the pod is gone"}
		case err != nil:
			return "", mayPass("get pod", err)
		case pod.UID != alert.UID:
			return "", &RefusedError{"another pod has the name now"}
		case pod.DeletionTimestamp != nil:
			return "", &RefusedError{"the pod is being deleted"}
		case pod.Annotations[v1.MirrorPodAnnotationKey] != "":
			return "", &RefusedError{"the pod is static: an eviction would remove its mirror pod only"}
		}
		err = client.PolicyV1().Evictions(alert.Namespace).Evict(ctx, &policy.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: alert.Pod, Namespace: alert.Namespace},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &alert.UID}},
		})
		switch {
		case apierrors.IsNotFound(err):
			return "", &RefusedError{"the pod is gone"}
		case apierrors.IsTooManyRequests(err):
			return "", &LaterError{fmt.Errorf("actions: a disruption budget forbids the eviction: %w", err)}
		case err != nil:
			return "", mayPass("evict pod", err)
		}
		return "evicted", nil
	}
}

// RestartContainer restarts the container of an alert by a function of the process.
func RestartContainer(restart func(r *engine.ActionRequest, reason string) error) Do {
	return func(_ context.Context, r *engine.ActionRequest) (string, error) {
		if r.Alert.Container == "" {
			return "", &RefusedError{"the alert is about no container: the scope of its rule must be container"}
		}
		if err := restart(r, fmt.Sprintf("rule %s: %s", r.Alert.Rule, r.Alert.Annotations["summary"])); err != nil {
			return "", &RefusedError{err.Error()}
		}
		return "container " + r.Alert.Container + " is stopped and started again", nil
	}
}

// RestartKubelet restarts the kubelet by the guard, which has a budget of its own.
func RestartKubelet(restart func(ctx context.Context, reason string) error) Do {
	return func(ctx context.Context, r *engine.ActionRequest) (string, error) {
		if err := restart(ctx, fmt.Sprintf("rule %s: %s", r.Alert.Rule, r.Alert.Annotations["summary"])); err != nil {
			return "", err
		}
		return "restarted", nil
	}
}

// Call posts the alert to the URL of the action, signed if there is a file with a secret. Call makes one
// request: whether a receiver that did not answer in time has acted is unknown.
func Call(secretFile string) Do {
	return func(ctx context.Context, r *engine.ActionRequest) (string, error) {
		receiver, err := webhook.NewReceiver(endpoint.Options{URL: r.Action.URL}, secretFile)
		if err != nil {
			return "", &RefusedError{err.Error()}
		}
		defer receiver.Close()
		if err := receiver.Send(ctx, r.Node, "", r.Alert); err != nil {
			return "", err
		}
		return "called " + receiver.Name(), nil
	}
}
