package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/test/robustness/gateway"
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

// neighbor writes to a pod of another node until ctx ends, also in a calm: versions of the API go on, as in a cluster. Without any write the server
// sent nothing on a watch that began right after its start, for a minute.
func (s *storm) neighbor(ctx context.Context) {
	pods := s.admin.CoreV1().Pods(metav1.NamespaceDefault)
	no := false
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "neighbor"}, Spec: v1.PodSpec{
		NodeName: "neighbor", AutomountServiceAccountToken: &no, Containers: []v1.Container{{Name: "main", Image: "example.com/main:1"}},
	}}
	for n := 0; pause(ctx, 300*time.Millisecond) == nil; n++ {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/beat":"%d"}}}`, n)
		if _, err := pods.Patch(bounded, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); apierrors.IsNotFound(err) {
			_, _ = pods.Create(bounded, pod, metav1.CreateOptions{})
		}
		cancel()
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

// lie writes what is not so to a half of the pods, always the same: they are not ready, and have another address.
func (s *storm) lie(ctx context.Context) {
	half := gateway.Rule{Share: 1, Shares: 2}
	for uid, name := range s.truth.existing() {
		if !half.IsFor(name) || ctx.Err() != nil {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"podIP":"10.9.9.9","podIPs":[{"ip":"10.9.9.9"},{"ip":"10.1.2.3","$patch":"delete"}],
			"conditions":[{"type":"Ready","status":"False","reason":"Lie"}]}}`, uid)
		_, _ = s.admin.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "liar"}, "status")
	}
}

// Behaviors of the webhook.
const (
	hookKeeps  = "keeps"  // stores the old status in place of the new one
	hookFails  = "fails"  // answers 500
	hookSlow   = "slow"   // answers after 3 s
	hookDies   = "dies"   // closes the connection
	hookDenies = "denies" // does not allow the write; a validating webhook
	hookName   = "status" // of the configurations
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
	case hookDenies:
		response["allowed"] = false
	case hookDies:
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": response})
}

// hookOn has the server ask the webhook about each write of a status.
func (s *storm) hookOn(ctx context.Context, behavior string) (err error) {
	s.hookSays.Store(behavior)
	url, fail, none, seconds := s.hook.URL, admissionregistration.Fail, admissionregistration.SideEffectClassNone, int32(10)
	client := admissionregistration.WebhookClientConfig{URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.hook.Certificate().Raw})}
	rules := []admissionregistration.RuleWithOperations{{
		Operations: []admissionregistration.OperationType{admissionregistration.Update},
		Rule:       admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}},
	}}
	meta, name, versions := metav1.ObjectMeta{Name: hookName}, "status.example.com", []string{"v1"}
	if behavior == hookDenies {
		_, err = s.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistration.ValidatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistration.ValidatingWebhook{{
				Name: name, ClientConfig: client, Rules: rules, FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions,
			}},
		}, metav1.CreateOptions{})
		return err
	}
	_, err = s.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &admissionregistration.MutatingWebhookConfiguration{
		ObjectMeta: meta, Webhooks: []admissionregistration.MutatingWebhook{{
			Name: name, ClientConfig: client, Rules: rules, FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: versions,
		}},
	}, metav1.CreateOptions{})
	return err
}

// deleteHooks removes the webhooks, and reports whether there was one.
func (s *storm) deleteHooks(ctx context.Context) (found bool, err error) {
	registrations := s.admin.AdmissionregistrationV1()
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		registrations.MutatingWebhookConfigurations().Delete, registrations.ValidatingWebhookConfigurations().Delete,
	} {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		switch removed := remove(bounded, hookName, metav1.DeleteOptions{}); {
		case removed == nil:
			found = true
		case !apierrors.IsNotFound(removed):
			err = errors.Join(err, removed)
		}
	}
	return found, err
}
