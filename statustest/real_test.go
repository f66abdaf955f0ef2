//go:build real

package statustest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/statustest"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// The same patches of one pod, in this order, get the same answers of both servers.
func TestRealServer_AnswersPatchesAlike(t *testing.T) {
	server := shared.Server(t)
	config := server.NodeConfig(t, "fidelity")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := server.Namespace(t)
	spec := controlplanetest.Pod(ns, "web", "fidelity")
	spec.Spec.RestartPolicy = v1.RestartPolicyNever
	pod := server.CreatePod(t, spec)
	real := status.NewClient(client.CoreV1(), "fidelity")
	fake := statustest.New()
	fake.SetNode("fidelity")
	fake.Put(pod)
	for _, step := range []string{
		`{"phase":"Running","podIP":"10.0.0.1"}`,
		`{"phase":"Running"}`, // says nothing new
		`{"podIP":"10.0.0.2"}`,
		`{"podIPs":[{"ip":"10.0.0.3"}]}`,
		`{"podIP":null}`,
		`{"podIPs":null}`,
		`{"podIPs":null,"podIP":null}`,
		`{"podIPs":[{"ip":"10.0.0.4"},{"ip":"fd00::4"}]}`,
		`{"podIPs":[{"ip":"nonsense"}],"podIP":"nonsense"}`,
		`{"hostIP":"10.1.0.1"}`,
		`{"hostIPs":[{"ip":"10.1.0.1"}]}`,
		`{"hostIP":"10.1.0.2"}`,
		`{"hostIP":null}`,
		`{"hostIPs":null,"hostIP":null}`,
		`{"hostIPs":[{"ip":"10.1.0.1"}]}`,
		`{"qosClass":"Guaranteed","phase":"Pending"}`,
		`{"qosClass":null}`,
		`{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}`,
		`{"observedGeneration":null,"conditions":[{"type":"Ready","status":"False","observedGeneration":null}]}`,
		`{"observedGeneration":-1}`,
		`{"nominatedNodeName":"other"}`,
		`{"startTime":"2026-01-01T00:00:00Z"}`,
		`{"containerStatuses":[{"name":"main","image":"a","imageID":"","lastState":{},"ready":true,"restartCount":0,"state":{"running":{"startedAt":null}}}]}`,
		`{"containerStatuses":[{"name":"main","image":"a","imageID":"","lastState":{},"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1}}}]}`,
		`{"containerStatuses":[{"name":"main","image":"a","imageID":"","lastState":{},"ready":true,"restartCount":0,"state":{"running":{"startedAt":null}}}]}`,
		`{"conditions":[{"type":"Ready","$patch":"delete"}]}`,
	} {
		patch := func(uid types.UID) []byte {
			return fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":%s}`, uid, step)
		}
		compare(t, step, pod, real, fake.Client(), patch(pod.UID))
	}
	compare(t, "another UID", pod, real, fake.Client(), []byte(`{"metadata":{"uid":"other"},"status":{"phase":"Failed"}}`))
	for _, step := range []string{
		`{"op":"test","path":"/status/phase","value":"Running"},{"op":"add","path":"/status/phase","value":"Failed"},{"op":"add","path":"/status/reason","value":"Over"},{"op":"add","path":"/status/message","value":""}`,
		`{"op":"test","path":"/status/phase","value":"Running"},{"op":"add","path":"/status/phase","value":"Succeeded"}`, // it has failed
		`{"op":"test","path":"/metadata/uid","value":"other"},{"op":"add","path":"/status/phase","value":"Succeeded"}`,
	} {
		patch := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/uid","value":%q},%s]`, pod.UID, step)
		compareBy(t, step, pod, real, fake.Client(), func(client status.Client) (*v1.Pod, error) {
			return client.(status.JSONPatcher).JSONPatchStatus(t.Context(), ns, pod.Name, patch)
		})
	}
	compare(t, "another resource version", pod, real, fake.Client(), fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":"1"},"status":{"phase":"Failed"}}`, pod.UID))
	elsewhere := server.CreatePod(t, controlplanetest.Pod(ns, "elsewhere", "other-node"))
	_, err = real.PatchStatus(t.Context(), ns, elsewhere.Name, fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"phase":"Failed"}}`, elsewhere.UID))
	if !apierrors.IsForbidden(err) {
		t.Errorf("a patch of another node's pod: %v, the fake forbids it", err)
	}
	missing := pod.DeepCopy()
	missing.Name = "missing"
	compare(t, "a pod that is not there", missing, real, fake.Client(), []byte(`{"metadata":{"uid":"x"},"status":{"phase":"Failed"}}`))
	_, realErr := real.Get(t.Context(), ns, "missing")
	_, fakeErr := fake.Get(t.Context(), ns, "missing")
	if problem(realErr) != problem(fakeErr) {
		t.Errorf("get of a pod that is not there:\nreal %s\nfake %s", problem(realErr), problem(fakeErr))
	}
}

// compare sends a patch to both servers and compares the answers.
func compare(t *testing.T, story string, pod *v1.Pod, real, fake status.Client, patch []byte) {
	t.Helper()
	compareBy(t, story, pod, real, fake, func(client status.Client) (*v1.Pod, error) {
		return client.PatchStatus(t.Context(), pod.Namespace, pod.Name, patch)
	})
}

// compareBy makes a request to both servers and compares the answers.
func compareBy(t *testing.T, story string, pod *v1.Pod, real, fake status.Client, send func(status.Client) (*v1.Pod, error)) {
	t.Helper()
	version := func(client status.Client) string {
		found, err := client.(status.Finder).FindPod(t.Context(), pod.Namespace, pod.Name) // the Node authorizer may not know the pod yet
		if err != nil {
			t.Fatal(err)
		}
		if found == nil {
			return ""
		}
		return found.ResourceVersion
	}
	answer := func(client status.Client) string {
		before := version(client)
		after, err := send(client)
		if err != nil {
			return problem(err)
		}
		text, err := json.Marshal(after.Status)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s new version: %v", text, before != after.ResourceVersion)
	}
	if r, f := answer(real), answer(fake); r != f {
		t.Errorf("%s:\nreal %s\nfake %s", story, r, f)
	}
}

// problem names the kind of an error and the fields that it blames.
func problem(err error) string {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return fmt.Sprint(err)
	}
	blamed := map[string]bool{}
	if details := answer.Status().Details; details != nil {
		for _, cause := range details.Causes {
			blamed[fmt.Sprint(cause.Field, " ", cause.Type)] = true
		}
	}
	return fmt.Sprintf("%d %s [%s]", answer.Status().Code, answer.Status().Reason, strings.Join(slices.Sorted(maps.Keys(blamed)), ", "))
}
