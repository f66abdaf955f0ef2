//go:build real

package agent_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/function"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/nodetest"
	"github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/testlog"
)

// runNode is all that a program needs to be a node with a runtime of its own.
func runNode(t *testing.T, server *controlplanetest.Server, name string, rt runtime.Runtime) (stop func()) {
	t.Helper()
	config := agent.Embedded(name)
	config.StateDir = t.TempDir()
	config.Eviction.Hard = eviction.Disabled() // whatever the disk of this machine has left
	node, err := agent.New(config, agent.Options{
		Runtime: rt, RESTConfig: server.NodeConfig(t, name), Logger: testlog.New(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return nodetest.Run(t, node.Run)
}

// await watches a pod in the API until it is as wanted; nil is a pod that is gone.
func await(t *testing.T, server *controlplanetest.Server, namespace, name, what string, wanted func(*v1.Pod) bool) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	w, err := server.Admin().CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := server.Admin().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) && wanted(nil) {
		return
	}
	var last *v1.Pod
	for event := range w.ResultChan() {
		last, _ = event.Object.(*v1.Pod)
		if event.Type == watch.Deleted {
			last = nil
		}
		if wanted(last) {
			return
		}
	}
	t.Fatalf("pod %s is not %s: %+v", name, what, last)
}

func isReady(pod *v1.Pod) bool {
	if pod != nil {
		for _, c := range pod.Status.Conditions {
			if c.Type == v1.PodReady {
				return c.Status == v1.ConditionTrue
			}
		}
	}
	return false
}

func isGone(pod *v1.Pod) bool { return pod == nil }

func deletePod(t *testing.T, server *controlplanetest.Server, pod *v1.Pod) {
	t.Helper()
	if err := server.Admin().CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Any runtime is a whole node: pods come from the API, run, are reported and go.
func TestAnyRuntimeIsAWholeNode(t *testing.T) {
	server := agent.Shared.Server(t)
	rt := runtimefake.New()
	runNode(t, server, "outside", rt)
	pod := server.CreatePod(t, controlplanetest.Pod(server.Namespace(t), "web", "outside"))
	await(t, server, pod.Namespace, pod.Name, "ready", isReady)
	deletePod(t, server, pod)
	await(t, server, pod.Namespace, pod.Name, "gone", isGone)
	ctx, cancel := patience.Context(t)
	defer cancel()
	changes := rt.Watch(ctx)
	for {
		if found, err := rt.Pods(ctx); err != nil || len(found) == 0 {
			return
		}
		if _, open := <-changes; !open {
			t.Fatal("the runtime still has the pod")
		}
	}
}

// A function is a runtime, and so a node.
func TestAFunctionIsAWholeNode(t *testing.T) {
	server := agent.Shared.Server(t)
	rt, err := function.New(function.Options{Run: func(ctx context.Context, call function.Call) error {
		fmt.Fprintln(call.Log, "hello from", call.Pod.Name)
		if call.Container.Image == "job" {
			return &function.ExitError{Code: 3, Message: "no luck"}
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() }) // after the node, which is stopped first
	runNode(t, server, "functions", rt)
	namespace := server.Namespace(t)
	web := server.CreatePod(t, controlplanetest.Pod(namespace, "web", "functions"))
	job := controlplanetest.Pod(namespace, "job", "functions")
	job.Spec.RestartPolicy, job.Spec.Containers[0].Image = v1.RestartPolicyNever, "job"
	server.CreatePod(t, job)
	await(t, server, namespace, "web", "ready", isReady)
	await(t, server, namespace, "job", "failed with exit code 3", func(pod *v1.Pod) bool {
		if pod == nil || pod.Status.Phase != v1.PodFailed {
			return false
		}
		end := pod.Status.ContainerStatuses[0].State.Terminated
		return end != nil && end.ExitCode == 3 && end.Message == "no luck"
	})
	deletePod(t, server, web)
	await(t, server, namespace, "web", "gone", isGone)
}
