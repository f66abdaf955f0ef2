//go:build real

package statustest_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clients "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/statustest"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// A clientset that works through the same script with both servers gets the same answers and the
// same watch events: creation, preconditions, no-op patches, deletion with and without grace.
func TestRealServer_LivesOfPodsAreAlike(t *testing.T) {
	real := shared.Server(t)
	fake := httptest.NewServer(statustest.New())
	defer fake.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: fake.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	got, want := story(t, client, "story"), story(t, real.Admin(), real.Namespace(t))
	if !slices.Equal(got, want) {
		t.Errorf("the fake:\n%s\nthe real server:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(want) < 20 {
		t.Errorf("the story has only %d lines:\n%s", len(want), strings.Join(want, "\n"))
	}
}

// story returns what a clientset is answered, and what a watch sees of it.
func story(t *testing.T, client kubernetes.Interface, ns string) (lines []string) {
	ctx, cancel := patience.Context(t)
	defer cancel()
	pods := client.CoreV1().Pods(ns)
	events, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=story"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	note := func(what string, pod *v1.Pod, err error) {
		lines = append(lines, what+": "+outcome(pod, err))
	}
	web := script(ctx, pods, ns, note)
	note("another", nil, pods.Delete(ctx, "web", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}))
	grace := int64(30)
	note("delete", nil, pods.Delete(ctx, "web", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	shorter, longer := int64(10), int64(60)
	note("longer", nil, pods.Delete(ctx, "web", metav1.DeleteOptions{GracePeriodSeconds: &longer}))
	note("shorter", nil, pods.Delete(ctx, "web", metav1.DeleteOptions{GracePeriodSeconds: &shorter}))
	leaving, err := pods.Get(ctx, "web", metav1.GetOptions{})
	note("still there", leaving, err)
	now := metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(web.UID))
	note("end", nil, pods.Delete(ctx, "web", *now))
	note("again", nil, pods.Delete(ctx, "web", *now))
	gone, err := pods.Get(ctx, "web", metav1.GetOptions{})
	note("gone", gone, err)
	lines = append(lines, seen(ctx, t, events)...)

	forced, err := pods.Create(ctx, controlplanetest.Pod(ns, "forced", "story"), metav1.CreateOptions{})
	note("create", forced, err)
	note("by force", nil, pods.Delete(ctx, "forced", *metav1.NewDeleteOptions(0)))
	lines = append(lines, seen(ctx, t, events)...)
	job, err := pods.Create(ctx, controlplanetest.Pod(ns, "job", "story"), metav1.CreateOptions{})
	note("create", job, err)
	job, err = pods.Patch(ctx, "job", types.StrategicMergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	note("finished", job, err)
	note("delete", nil, pods.Delete(ctx, "job", metav1.DeleteOptions{}))
	return append(lines, seen(ctx, t, events)...)
}

// script is the part of the story before the pod is deleted.
func script(ctx context.Context, pods clients.PodInterface, ns string, note func(string, *v1.Pod, error)) *v1.Pod {
	patch := func(what, name, body string) {
		pod, err := pods.Patch(ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		note(what, pod, err)
	}
	web, err := pods.Create(ctx, controlplanetest.Pod(ns, "web", "story"), metav1.CreateOptions{})
	note("create", web, err)
	again, err := pods.Create(ctx, controlplanetest.Pod(ns, "web", "story"), metav1.CreateOptions{})
	note("create again", again, err)
	elsewhere, err := pods.Create(ctx, controlplanetest.Pod(ns, "elsewhere", "other"), metav1.CreateOptions{})
	note("elsewhere", elsewhere, err)
	patch("patch", "web", `{"status":{"phase":"Running","podIP":"10.0.0.1"}}`)
	patch("no-op", "web", `{"status":{"phase":"Running"}}`)
	patch("spec is ignored", "web", `{"spec":{"nodeName":"other"},"status":{"message":"x"}}`)
	patch("stale", "web", fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"phase":"Failed"}}`, web.ResourceVersion))
	patch("other UID", "web", `{"metadata":{"uid":"other"},"status":{"phase":"Failed"}}`)
	patch("missing", "missing", `{"status":{"phase":"Failed"}}`)
	for _, selector := range []string{"spec.nodeName=story", "spec.nodeName=story,metadata.name=web", "spec.nodeName=story,metadata.name=x", ""} {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: selector})
		note("list "+selector, nil, err)
		for i := range list.Items {
			note("  has", &list.Items[i], nil)
		}
	}
	return web
}

// seen returns the events of a watch until the pod is deleted.
func seen(ctx context.Context, t *testing.T, events watch.Interface) (lines []string) {
	for {
		select {
		case e, ok := <-events.ResultChan():
			pod, isPod := e.Object.(*v1.Pod)
			if !ok || !isPod {
				t.Fatalf("the watch ended: %v", e.Object)
			}
			lines = append(lines, fmt.Sprint(e.Type, ": ", outcome(pod, nil)))
			if e.Type == watch.Deleted {
				return lines
			}
		case <-ctx.Done():
			t.Fatalf("the watch has only %q", lines)
		}
	}
}

var quoted = regexp.MustCompile(`"[^"]*"`)

// outcome is an answer without what two servers cannot agree upon, such as versions and times.
func outcome(pod *v1.Pod, err error) string {
	if err != nil {
		return problem(err)
	}
	if pod == nil {
		return "ok"
	}
	grace := int64(-1)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = *pod.DeletionGracePeriodSeconds
	}
	return quoted.ReplaceAllString(fmt.Sprintf("%s on %s, generation %d, deleting %v with %d s, %s %s %s %v %s", pod.Name, pod.Spec.NodeName,
		pod.Generation, pod.DeletionTimestamp != nil, grace, pod.Status.Phase, pod.Status.Message, pod.Status.PodIP, pod.Status.PodIPs, pod.Status.QOSClass), `""`)
}
