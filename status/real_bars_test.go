//go:build real

package status_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var bars = flag.Bool("bars", false, "measure in full, for 21 minutes, and hold the times to their bounds: make core-bars")

// length is how long something lasts with the flag, and without it.
func length(full, short time.Duration) time.Duration {
	if *bars {
		return full
	}
	return short
}

// bar prints a measured time, and with the flag holds it to its bound.
func bar(t *testing.T, what string, got, most time.Duration) {
	t.Helper()
	fmt.Printf("| %s | %s | %s |\n", what, got.Round(10*time.Millisecond), most)
	if *bars && got > most {
		t.Errorf("%s: %s, want at most %s", what, got, most)
	}
}

// TestRealServer_NeverStopsTrying has a webhook keep readiness, a node lifecycle controller take readiness away again and again, and
// a writer of annotations that is faster than the server.
func TestRealServer_NeverStopsTrying(t *testing.T) {
	server := shared.Server(t)
	t.Run("webhook", func(t *testing.T) {
		t.Parallel()
		n := startNode(t, server, "bars-webhook")
		namespace := server.Namespace(t)
		pod := n.create(namespace, "kept")
		n.set(pod, runningStatus(pod, true))
		n.flush()
		remove := keepReadyByWebhook(t, n, namespace)
		n.set(pod, runningStatus(pod, false))
		n.until("the webhook to overrule the pod", func() bool { return len(n.manager.Pending()) == 1 && n.manager.Pending()[0].Attempts > 0 })
		wait(t, length(time.Minute, 3*time.Second))
		remove()
		began := time.Now()
		n.await(namespace, "kept", "not ready", isNotReady)
		bar(t, "a webhook that kept readiness for a minute is gone: until the API is right", time.Since(began), time.Minute)
	})
	t.Run("flaps", func(t *testing.T) {
		t.Parallel()
		n := startNode(t, server, "bars-flaps")
		namespace := server.Namespace(t)
		pod := n.create(namespace, "steady")
		n.set(pod, runningStatus(pod, true))
		n.flush()
		var worst time.Duration
		flaps := 20
		if !*bars {
			flaps = 4
		}
		for range flaps {
			began := time.Now()
			takeReadinessAway(t, n, pod)
			n.await(namespace, "steady", "ready", isReady)
			worst = max(worst, time.Since(began))
			wait(t, length(time.Minute, time.Second)-time.Since(began))
		}
		bar(t, fmt.Sprintf("%d flaps of the node, the worst: until the pod is ready again", flaps), worst, 10*time.Second)
	})
	for _, latency := range []time.Duration{100 * time.Millisecond, time.Second} {
		t.Run("annotator "+latency.String(), func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("bars-annotator-%d", latency.Milliseconds())
			n := startNode(t, server, name, func(o *status.Options) { o.Client = slowClient{o.Client.(wholeClient), latency} })
			namespace := server.Namespace(t)
			pod := n.create(namespace, "job")
			n.set(pod, runningStatus(pod, true))
			n.flush()
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); annotate(ctx, n, pod, latency*2/5) }()
			defer func() { stop(); <-done }()
			began := time.Now()
			n.set(pod, endedStatus(pod, 1))
			n.await(namespace, "job", "Failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
			bar(t, fmt.Sprintf("a busy annotator and %s per request: until the end is in the API", latency), time.Since(began), 15*time.Second)
		})
	}
}

func isReady(p *v1.Pod) bool    { return conditionOf(p, v1.PodReady) == v1.ConditionTrue }
func isNotReady(p *v1.Pod) bool { return conditionOf(p, v1.PodReady) == v1.ConditionFalse }

// wait lets time pass in which the server does something wrong.
func wait(t *testing.T, d time.Duration) {
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// takeReadinessAway does what the node lifecycle controller does when the lease of the node is late.
func takeReadinessAway(t *testing.T, n *node, pod *v1.Pod) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	if _, err := n.server.Admin().CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "lifecycle"}, "status"); err != nil {
		t.Fatal(err)
	}
}

// annotate changes an annotation of the pod until the context ends.
func annotate(ctx context.Context, n *node, pod *v1.Pod, every time.Duration) {
	for i := 0; ; i++ {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"chat":"%d"}}}`, i)
		if _, err := n.server.Admin().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
			n.Error(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

type wholeClient interface {
	status.Client
	status.JSONPatcher
	status.Finder
	status.VersionReader
}

// slowClient is a client over a slow link.
type slowClient struct {
	wholeClient
	latency time.Duration
}

func (c slowClient) cross(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(c.latency / 2):
	}
}

func (c slowClient) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	c.cross(ctx)
	defer c.cross(ctx)
	return c.wholeClient.Get(ctx, namespace, name)
}

func (c slowClient) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	c.cross(ctx)
	defer c.cross(ctx)
	return c.wholeClient.PatchStatus(ctx, namespace, name, patch)
}

func (c slowClient) JSONPatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	c.cross(ctx)
	defer c.cross(ctx)
	return c.wholeClient.JSONPatchStatus(ctx, namespace, name, patch)
}

// keepReadyByWebhook registers a mutating webhook that keeps the pods of a namespace ready, and waits until it does. The function it returns
// removes the webhook.
func keepReadyByWebhook(t *testing.T, n *node, namespace string) (remove func()) {
	t.Helper()
	hook := httptest.NewTLSServer(http.HandlerFunc(keepReady))
	t.Cleanup(hook.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	policy, effects := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone
	hooks := n.server.Admin().AdmissionregistrationV1().MutatingWebhookConfigurations()
	config, err := hooks.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "keep-ready.example.com", AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &policy, SideEffects: &effects,
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &hook.URL, CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove = func() {
		if err := hooks.Delete(context.Background(), config.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	// The server learns of the webhook by a watch: until then a loss of readiness is stored.
	probe := n.server.CreatePod(t, controlplanetest.Pod(namespace, "probe", n.name))
	n.until("the webhook to be called", func() bool {
		patch := `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
		answer, err := n.server.Admin().CoreV1().Pods(namespace).Patch(t.Context(), probe.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return err == nil && isReady(answer)
	})
	return remove
}

// keepReady answers a review so that the condition Ready is True.
func keepReady(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var pod v1.Pod
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err == nil {
		err = json.Unmarshal(review.Request.Object.Raw, &pod)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == v1.PodReady && !podstatus.IsTerminal(pod.Status.Phase) {
			kind := admissionv1.PatchTypeJSONPatch
			answer.PatchType = &kind
			answer.Patch = fmt.Appendf(nil, `[{"op":"replace","path":"/status/conditions/%d/status","value":"True"}]`, i)
		}
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(review)
}
