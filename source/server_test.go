package source

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/statusd/statusd/internal/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) {
	// One of client-go's handlers sleeps until a second after the last error by the clock
	// at program start: for decades, where a test's virtual time begins in the year 2000.
	utilruntime.ErrorHandlers = nil
	shared.Main(m)
}

// patience bounds each wait for what takes seconds at most on an idle machine.
const patience = 2 * time.Minute

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

// A server is restored from a backup. The watch goes on from a version that the server has yet to
// reach, and does not show what happens to pods until then; a list does.
func TestRelistAfterARestoreOnARealServer(t *testing.T) {
	server := controlplanetest.Start(t)
	namespace := server.Namespace(t)
	client, admin := server.Node(t, "edge"), server.Admin()
	data, backup := server.Process.DataDir(), filepath.Join(t.TempDir(), "backup")
	server.Kill(t)
	replaceFolder(t, data, backup)
	server.Restart(t)

	old := server.CreatePod(t, controlplanetest.Pod(namespace, "old", "edge"))
	for i := range 400 { // versions that are given out once more after the restore
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"i":"%d"}}}`, i)
		if _, err := admin.CoreV1().Pods(namespace).Patch(t.Context(), "old", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	changes := make(chan Change, 1000) // more than the test makes
	api, err := NewAPI(APIOptions{Client: client, NodeName: "edge", Handle: func(c Change) { changes <- c }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	defer func() { cancel(); <-done }()
	await := func(story string, is func(Change) bool) {
		t.Helper()
		timeout := time.After(patience)
		for {
			select {
			case c := <-changes:
				if is(c) {
					return
				}
			case <-timeout:
				t.Fatalf("waited %s: %s; the source says %v", patience, story, api.Err())
			}
		}
	}
	has := func(c Change, op Op, uid types.UID) bool {
		return c.Op == op && slices.ContainsFunc(c.Pods, func(pod *v1.Pod) bool { return pod.UID == uid })
	}
	await("the pod from before the restore", func(c Change) bool { return has(c, Set, old.UID) })

	server.Kill(t)
	replaceFolder(t, backup, data)
	server.Restart(t)
	created := server.CreatePod(t, controlplanetest.Pod(namespace, "new", "edge"))
	t.Logf("version %s before the restore, %s after it", old.ResourceVersion, created.ResourceVersion)
	api.Relist()
	await("the pod that the restored server has", func(c Change) bool { return has(c, Update, created.UID) })
}

// replaceFolder puts a copy of one folder in the place of another.
func replaceFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
