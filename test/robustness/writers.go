package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/test/robustness/record"
)

// foreignWrite is what another writer does to a random pod: annotate it, or write the condition that the node must not touch.
func (s *storm) foreignWrite(random *rand.Rand) func(context.Context) {
	uid, name := s.truth.any(random)
	if uid == "" { // there is no pod
		return func(context.Context) {}
	}
	number := s.gates.Add(1)
	if random.IntN(2) == 0 {
		return func(ctx context.Context) {
			patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{"example.com/chatty":"%d"}}}`, uid, number)
			_, _ = s.admin.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		}
	}
	return func(ctx context.Context) {
		if _, busy := s.gating.LoadOrStore(uid, true); busy { // the numbers of a pod only grow
			return
		}
		defer s.gating.Delete(uid)
		s.history.Add(record.Record{Kind: record.Foreign, Verb: record.Begin, UID: uid, Name: name, Facts: &record.Facts{Gate: int(number)}})
		r := record.Record{Kind: record.Foreign, Verb: record.End, UID: uid, Name: name, Facts: &record.Facts{Gate: int(number)}}
		pod, err := s.patchStatus(ctx, uid, name, v1.PodCondition{Type: record.Gate, Status: v1.ConditionTrue, Message: fmt.Sprint(number)})
		if err != nil {
			r.Err = err.Error()
		} else if record.FactsOf(pod).Gate == int(number) { // no webhook has changed it
			r.RV = record.VersionOf(pod)
		}
		s.history.Add(r)
	}
}

// patchStatus writes conditions of a pod as an administrator.
func (s *storm) patchStatus(ctx context.Context, uid, name string, conditions ...v1.PodCondition) (*v1.Pod, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": map[string]any{"conditions": conditions}})
	if err != nil {
		return nil, err
	}
	return s.admin.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "another"}, "status")
}

// notReady writes what the node lifecycle controller writes for a node that is silent, to each pod.
func (s *storm) notReady(ctx context.Context) {
	for uid, name := range s.truth.existing() {
		if ctx.Err() != nil {
			return
		}
		_, _ = s.patchStatus(ctx, uid, name, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "NodeNotReady"})
	}
}

// lie writes what is not so to every third pod: it is not ready, and has another address.
func (s *storm) lie(ctx context.Context) {
	n := 0
	for uid, name := range s.truth.existing() {
		if n++; n%3 != 0 || ctx.Err() != nil {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"podIP":"10.9.9.9","podIPs":[{"ip":"10.9.9.9"},{"ip":"10.1.2.3","$patch":"delete"}],
			"conditions":[{"type":"Ready","status":"False","reason":"Lie"}]}}`, uid)
		_, _ = s.admin.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "liar"}, "status")
	}
}

// Behaviors of the webhook.
const (
	hookKeeps = "keeps"  // stores the old status in place of the new one
	hookFails = "fails"  // answers 500
	hookSlow  = "slow"   // answers after 3 s
	hookDies  = "dies"   // closes the connection
	hookName  = "status" // of the configuration
)

// startHook serves the webhook; the server asks it while it is configured.
func (s *storm) startHook() {
	s.hook = httptest.NewUnstartedServer(http.HandlerFunc(s.admit))
	s.hook.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.hook.StartTLS()
}

func (s *storm) admit(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID       string `json:"uid"`
			OldObject struct {
				Status json.RawMessage `json:"status"`
			} `json:"oldObject"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := map[string]any{"uid": review.Request.UID, "allowed": true}
	switch s.hookSays.Load() {
	case hookKeeps:
		patch, _ := json.Marshal([]map[string]any{{"op": "replace", "path": "/status", "value": review.Request.OldObject.Status}})
		response["patchType"], response["patch"] = "JSONPatch", patch
	case hookFails:
		http.Error(w, "injected", http.StatusInternalServerError)
		return
	case hookSlow:
		select {
		case <-time.After(3 * time.Second):
		case <-r.Context().Done():
		}
	case hookDies:
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": response})
}

// hookOn has the server ask the webhook about each write of a status, until the returned function is called.
func (s *storm) hookOn(ctx context.Context, behavior string) (undo func(context.Context) error, err error) {
	s.hookSays.Store(behavior)
	url, fail, none, seconds := s.hook.URL, admissionregistration.Fail, admissionregistration.SideEffectClassNone, int32(10)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.hook.Certificate().Raw})
	hooks := s.admin.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err = hooks.Create(ctx, &admissionregistration.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: hookName},
		Webhooks: []admissionregistration.MutatingWebhook{{
			Name: "status.example.com", ClientConfig: admissionregistration.WebhookClientConfig{URL: &url, CABundle: authority},
			Rules: []admissionregistration.RuleWithOperations{{
				Operations: []admissionregistration.OperationType{admissionregistration.Update},
				Rule:       admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}},
			}},
			FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	return func(ctx context.Context) error { return hooks.Delete(ctx, hookName, metav1.DeleteOptions{}) }, err
}
