//go:build real

package source

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) {
	// One of client-go's handlers sleeps until a second after the last error by the clock
	// at program start: for decades, where a test's virtual time begins in the year 2000.
	utilruntime.ErrorHandlers = nil
	shared.Main(m)
}

// patience bounds each wait for what takes seconds at most on an idle machine.
const patience = 10 * time.Minute

func TestPodsOfThisNodeOnARealServer(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	node := namespace // one without pods of an earlier run
	client, admin := server.Node(t, node), server.Admin()
	server.Node(t, "source-other")
	server.CreatePod(t, controlplanetest.Pod(namespace, "before", node))
	server.CreatePod(t, controlplanetest.Pod(namespace, "elsewhere", "source-other"))

	changes := make(chan Change, 100) // more than the test makes
	api, err := NewAPI(APIOptions{Client: client, NodeName: node, Handle: func(c Change) { changes <- c }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v, want nil", err)
		}
	}()
	await := func(op Op, name string) *v1.Pod {
		t.Helper()
		timeout := time.After(patience)
		for {
			select {
			case c := <-changes:
				i := slices.IndexFunc(c.Pods, func(pod *v1.Pod) bool { return pod.Name == name })
				if c.Op == op && i >= 0 {
					return c.Pods[i]
				}
			case <-timeout:
				t.Fatalf("waited %s for the %s of pod %s; the source says %v", patience, op, name, api.Err())
			}
		}
	}

	select {
	case first := <-changes:
		if first.Op != Set || len(first.Pods) != 1 || first.Pods[0].Name != "before" {
			t.Fatalf("first said: %s, want the set of the one pod that is bound here", describe(first))
		}
	case <-time.After(patience):
		t.Fatalf("waited %s for the first change; the source says %v", patience, api.Err())
	}
	created := server.CreatePod(t, controlplanetest.Pod(namespace, "after", node))
	if got := await(Update, "after"); got.UID != created.UID {
		t.Errorf("got UID %s, want %s", got.UID, created.UID)
	}
	if err := admin.CoreV1().Pods(namespace).Delete(t.Context(), "after", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	if got := await(Remove, "after"); got.UID != created.UID {
		t.Errorf("removed UID %s, want %s", got.UID, created.UID)
	}
	if err := api.Err(); err != nil {
		t.Errorf("a source that works says %v", err)
	}
}
