//go:build !race

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/audit"
	past "github.com/statusd/statusd/internal/history"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/unixsocket"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/podstatus"
)

// TestScripts runs the commands as a user does, each in a process of its own. A process under the race detector takes a second to
// end; TestAllAnswersAgree and others run the commands under it. $SOCKET and $SERVER are a node with a few pods;
// $OBSERVED_SOCKET and $OBSERVED_SERVER are one that an audit has found drift on, with a guard and rules;
// $CALM_SOCKET is the socket of an observer without drift, $SILENT_SOCKET of an observer with a side that does not answer; $KUBECONFIG is an
// API server that has a pod of another node.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			bin := filepath.Join(env.WorkDir, "bin")
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if err := os.Mkdir(bin, 0o755); err != nil {
				return err
			}
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("TZ", "UTC")
			return errors.Join(os.Symlink(self, filepath.Join(bin, "statusd")), os.Symlink(self, filepath.Join(bin, pluginName)),
				serveScripts(t, env), apiServerOfScript(t, env))
		},
	})
}

// serveScripts serves the nodes of the scripts.
func serveScripts(t *testing.T, env *testscript.Env) error {
	began := time.Now()
	plain := queryapi.Options{Sources: view.Sources{Source: scriptNode{began}, Location: time.UTC}, Epoch: "e"}
	observed, calm, silent := plain, plain, plain
	observed.Load, observed.Audit, observed.Guard, observed.Alerts = scriptLoad{}, scriptAudit{driftReport(began)}, &scriptGuard{began: began}, &scriptAlerts{began: began}
	calm.Audit = scriptAudit{audit.Report{At: began, Node: "n1", NodeMissing: true, Sides: sides(began), Differences: []audit.Difference{settling(began)}}}
	silent.Audit = scriptAudit{audit.Report{At: began, Node: "n1", Sides: sides(began, audit.SideRuntime)}}
	return errors.Join(serveScript(t, env, "", plain), serveScript(t, env, "OBSERVED_", observed), serveScript(t, env, "CALM_", calm), serveScript(t, env, "SILENT_", silent))
}

// serveScript serves a node. The names of its variables begin with prefix.
func serveScript(t *testing.T, env *testscript.Env, prefix string, options queryapi.Options) error {
	server, err := queryapi.New(options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	socket := filepath.Join(env.WorkDir, prefix+"node.sock")
	listener, err := unixsocket.Listen(socket)
	if err != nil {
		cancel()
		return err
	}
	done, served := make(chan error, 1), make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	over := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { served <- over.Serve(listener) }()
	tcp := httptest.NewServer(server.Handler())
	env.Setenv(prefix+"SOCKET", socket)
	env.Setenv(prefix+"SERVER", tcp.URL)
	env.Defer(func() {
		cancel()
		tcp.Close()
		if err := errors.Join(over.Close(), <-done); err != nil {
			t.Error(err)
		}
		<-served
	})
	return nil
}

// apiServerOfScript answers for the pods of a cluster.
func apiServerOfScript(t *testing.T, env *testscript.Env) error {
	pod := v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "far", UID: "uid-far", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
		Status: v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: "0/3 nodes are available",
		}}},
	}
	answers := map[string]any{
		"/api/v1/namespaces/default/pods":     v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{pod}},
		"/api/v1/namespaces/default/pods/far": pod,
		"/api/v1/namespaces/default/events":   v1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}},
	}
	nodesOfScript(answers)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "not found"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	env.Defer(server.Close)
	file := filepath.Join(env.WorkDir, "kubeconfig")
	env.Setenv("KUBECONFIG", file)
	return os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u}]
current-context: c
`, server.URL), 0o600)
}

// scriptNode is a node with a pod that serves, one in a crash loop and one with a hostile message.
type scriptNode struct{ began time.Time }

func (n scriptNode) pods() map[types.UID]view.Pod {
	longAgo := metav1.NewTime(n.began.Add(-10 * time.Hour)) // so that a slow test sees the same age
	pod := func(namespace, name string, ready bool, state v1.ContainerState, restarts int32) view.Pod {
		status, word := v1.ConditionTrue, ""
		if !ready {
			status, word = v1.ConditionFalse, "ContainersNotReady"
		}
		made := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: longAgo},
			Spec:       v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "main", Image: "host"}}},
			Status: v1.PodStatus{
				Phase: v1.PodRunning, PodIP: "192.0.2.7",
				Conditions:        []v1.PodCondition{{Type: v1.PodReady, Status: status, Reason: word, LastTransitionTime: longAgo}, {Type: v1.ContainersReady, Status: status, Reason: word, LastTransitionTime: longAgo}},
				ContainerStatuses: []v1.ContainerStatus{{Name: "main", Ready: ready, RestartCount: restarts, State: state}},
			},
		}
		return view.Pod{Facts: explain.Facts{Now: n.began, Pod: made, Delivery: &podstatus.Delivery{Version: 1, Accepted: 1}}}
	}
	runs := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: longAgo}}
	loop := pod("default", "loop", false, v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, 4)
	loop.Facts.Delivery = &podstatus.Delivery{Version: 2, Accepted: 1, Since: n.began.Add(-12 * time.Second), Attempts: 3, Error: "503"}
	hostile := pod("shop", "hostile", false, v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "\x1b[2J\u202eevil"}}, 0)
	return map[types.UID]view.Pod{"uid-web": pod("default", "web", true, runs, 0), "uid-loop": loop, "uid-hostile": hostile}
}

func (n scriptNode) UIDs() []types.UID { return []types.UID{"uid-web", "uid-loop", "uid-hostile"} }

func (n scriptNode) Pod(uid types.UID) (view.Pod, bool) {
	p, ok := n.pods()[uid]
	return p, ok
}

func (n scriptNode) Gone() []view.PodHistory { return nil }

func (n scriptNode) History(namespace, name string) (view.PodHistory, bool) {
	if name != "loop" {
		return view.PodHistory{}, false
	}
	accepted := n.began.Add(20 * time.Millisecond)
	return view.PodHistory{Ref: past.Ref{UID: "uid-loop", Namespace: namespace, Name: name}, Records: []view.Record{
		{Seq: 1, Observed: n.began, Accepted: &accepted, Kind: past.KindContainer, Container: "main", From: "running", To: "terminated", Reason: "Error", Message: "exit code 3"},
	}}, true
}

func (n scriptNode) Node() view.NodeDetail {
	return view.NodeDetail{Name: "n1", Version: "v0", Runtime: "process://v0", Problems: []string{"journal: disk full"},
		Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}
}

func (n scriptNode) Watch(ctx context.Context, _ func(types.UID)) error {
	<-ctx.Done()
	return nil
}
