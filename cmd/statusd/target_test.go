package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestTarget_ReadsWhatPeopleWrite(t *testing.T) {
	for text, want := range map[string]target{
		"web": {name: "web"}, "pod/web": {kind: "Pod", name: "web"}, "po/web": {kind: "Pod", name: "web"}, "shop/web": {namespace: "shop", name: "web"},
		"deployment/web": {kind: "Deployment", name: "web"}, "deploy web": {kind: "Deployment", name: "web"}, "Job/web": {kind: "Job", name: "web"},
	} {
		if got, err := new(explainCommand).target(strings.Fields(text)); err != nil || got != want {
			t.Errorf("%s: got %+v (%v), want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"service web", "pod/"} {
		if got, err := new(explainCommand).target(strings.Fields(text)); err == nil {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

// owned is the metadata of an object that another one has made.
func owned(name, kind string, owner types.UID) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, OwnerReferences: []metav1.OwnerReference{{Kind: kind, UID: owner, Controller: &yes}}}
}

func TestExplainObject_FindsWhatPeopleMean(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	plain := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}
	}
	two := int32(2)
	client := fake.NewClientset(
		&v1.Pod{ObjectMeta: plain("annoy-1")}, &v1.Pod{ObjectMeta: plain("annoy-2")}, &v1.Pod{ObjectMeta: plain("lonely-5d4f7")},
		&appsv1.Deployment{ObjectMeta: plain("web"), Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: selector}},
		&appsv1.ReplicaSet{ObjectMeta: owned("web-7", "Deployment", "web"), Spec: appsv1.ReplicaSetSpec{Replicas: &two, Selector: selector}},
		&v1.Event{ObjectMeta: plain("e1"), Type: v1.EventTypeWarning, Reason: "FailedCreate", InvolvedObject: v1.ObjectReference{UID: "web-7"}, LastTimestamp: metav1.Now(),
			Message: `Error creating: pods "web-7-x" is forbidden: exceeded quota: small`},
		&batchv1.Job{ObjectMeta: plain("report"), Spec: batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "report"}}},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: v1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}}}},
	)
	for name, want := range map[target]string{
		{kind: "Pod", name: "annoy-1"}:    "Pod shop/annoy-1",
		{name: "lonely"}:                  "Pod shop/lonely-5d4f7",
		{kind: "Deployment", name: "web"}: `Deployment shop/web is not Ready, because 2 of 2 pods cannot be created: pods "web-7-x" is forbidden: exceeded quota: small`,
		{name: "web"}:                     "Deployment shop/web is not Ready",
		{name: "report"}:                  "Job shop/report has failed, because it has given up: BackoffLimitExceeded",
	} {
		name.namespace = "shop"
		why, err := explainObject(t.Context(), client, name)
		if got := why.Sentence(time.UTC); err != nil || !strings.Contains(got, want) {
			t.Errorf("%+v: got %s (%v), want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"annoy": "there are annoy-1, annoy-2", "anoy-1": "did you mean annoy-1?", "zzz": "not found"} {
		if _, err := explainObject(t.Context(), client, target{namespace: "shop", name: name}); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestCommands_NameTheirVersionToTheAPIServer(t *testing.T) {
	var mu sync.Mutex // guards agents
	var agents []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		agents = append(agents, r.UserAgent())
		mu.Unlock()
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, kubeconfig, fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}", server.URL))
	for _, args := range [][]string{{"explain", "web"}, {"doctor", "--state-dir", t.TempDir()}} {
		if err := command(append(args, "--kubeconfig", kubeconfig), io.Discard); err == nil {
			t.Errorf("%v: got no error from a server that refuses everything", args)
		}
		mu.Lock()
		asked := agents
		agents = nil
		mu.Unlock()
		if len(asked) == 0 {
			t.Errorf("%v: no request", args)
		}
		for _, agent := range asked {
			if !strings.HasPrefix(agent, "statusd-") || !strings.HasSuffix(agent, "/"+version()) {
				t.Errorf("%v: got user agent %q", args, agent)
			}
		}
	}
}

// The context of a kubeconfig can be chosen, as with kubectl.
func TestContext_IsAFlag(t *testing.T) {
	for _, flag := range []string{"context", "cluster", "user", "as"} {
		if newExplain(true).Flags().Lookup(flag) == nil {
			t.Errorf("there is no --%s", flag)
		}
	}
}
