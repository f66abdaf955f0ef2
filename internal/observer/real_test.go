//go:build real

package observer

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/apiside"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// A real API server, as the node's own user: the side of the API answers, drift is an Event of the pod
// with its UID and makes the condition of the Node False; when the kubelet has reported, it is over, and after the end
// of the observer the condition is gone.
func TestRealServer_DriftIsAnEventAndACondition(t *testing.T) {
	const node = "observed"
	server := shared.Server(t)
	namespace := server.Namespace(t)
	config := Default()
	config.NodeName, config.StateDir, config.HealthzBindAddress = node, t.TempDir(), "127.0.0.1:0"
	config.Outputs.Events, config.Outputs.Conditions = true, true
	options := Options{Logger: slog.New(slog.DiscardHandler), RESTConfig: server.NodeConfig(t, node)}
	pod := server.CreatePod(t, controlplanetest.Pod(namespace, "web", node))
	w := newWorld(t)
	w.adopt(pod)
	client := server.Node(t, node)
	report := func() {
		t.Helper()
		reported := w.kubelet[pod.UID].DeepCopy()
		reported.ResourceVersion = ""
		if _, err := client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), reported, metav1.UpdateOptions{FieldManager: "kubelet"}); err != nil {
			t.Fatal(err)
		}
	}
	report()
	options.NewSides = func(server *rest.Config, changed Changed) (Sides, error) {
		w.changed = changed
		sides := w.sides()
		var err error
		sides.API, err = apiside.New(apiside.Options{Config: server, Node: node, Changed: func(uid types.UID) { changed(audit.SideAPI, uid) }})
		return sides, err
	}
	o, err := New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	condition := func() v1.ConditionStatus {
		found, err := server.Admin().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(found.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == ConditionType })
		if i < 0 {
			return ""
		}
		return found.Status.Conditions[i].Status
	}
	event := func(reason string) bool {
		list, err := server.Admin().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e v1.Event) bool { return e.Reason == reason && e.InvolvedObject.UID == pod.UID })
	}

	await(t, "the side of the API answers, and has the pod", func() bool {
		v := o.view.Load()
		return v.facts.APIAnswer.Known() && v.pods[pod.UID].api != nil
	})
	w.freeze(true)
	w.kill("web")
	await(t, "an event says so", func() bool { return event(reasonDetected) })
	await(t, "the condition says so", func() bool { return condition() == v1.ConditionFalse })
	w.freeze(false)
	w.report("web")
	report()
	await(t, "an event says that it is over", func() bool { return event(reasonResolved) })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if status := condition(); status != "" {
		t.Errorf("after the end the condition is %s", status)
	}
}
