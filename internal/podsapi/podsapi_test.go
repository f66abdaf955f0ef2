package podsapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusd/statusd/internal/podsapi"
	"github.com/statusd/statusd/internal/unixsocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode is a source of made-up pods.
type fakeNode struct {
	mu       sync.Mutex // guards what follows
	unsynced bool
	pods     map[types.UID]*v1.Pod
	changed  func(types.UID)
	watching chan struct{}
}

func newFakeNode() *fakeNode {
	return &fakeNode{pods: map[types.UID]*v1.Pod{}, changed: func(types.UID) {}, watching: make(chan struct{})}
}

func (n *fakeNode) Synced() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.unsynced
}

func (n *fakeNode) Pods() (list []*v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, pod := range n.pods {
		list = append(list, pod)
	}
	slices.SortFunc(list, func(a, b *v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (n *fakeNode) Pod(uid types.UID) (*v1.Pod, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pod, ok := n.pods[uid]
	return pod, ok
}

func (n *fakeNode) Watch(ctx context.Context, changed func(types.UID)) error {
	n.mu.Lock()
	n.changed = changed
	n.mu.Unlock()
	close(n.watching)
	<-ctx.Done()
	return ctx.Err()
}

// set stores a pod and announces it.
func (n *fakeNode) set(name, message string) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}, Status: v1.PodStatus{Phase: v1.PodRunning, Message: message}}
	n.mu.Lock()
	n.pods[pod.UID] = pod
	changed := n.changed
	n.mu.Unlock()
	changed(pod.UID)
}

func (n *fakeNode) remove(name string) {
	n.mu.Lock()
	delete(n.pods, types.UID("uid-"+name))
	changed := n.changed
	n.mu.Unlock()
	changed(types.UID("uid-" + name))
}

// serve runs a server on a Unix socket until the test ends, and returns a way to connect to it.
func serve(t *testing.T, node *fakeNode, limit int) func() podsv1alpha1.PodsClient {
	t.Helper()
	server, err := podsapi.New(podsapi.Options{Source: node, MaxWatchers: limit})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pods.sock")
	listener, err := unixsocket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, listener) }()
	<-node.watching
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() podsv1alpha1.PodsClient {
		connection, err := grpc.NewClient("passthrough:///pods", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return unixsocket.Dial(ctx, path) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := connection.Close(); err != nil {
				t.Error(err)
			}
		})
		return podsv1alpha1.NewPodsClient(connection)
	}
}

func decode(t *testing.T, data []byte) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{}
	if err := pod.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestListAndGet(t *testing.T) {
	node := newFakeNode()
	node.set("a", "")
	node.set("b", "hello")
	client := serve(t, node, 0)()
	list, err := client.ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
	if err != nil || len(list.Pods) != 2 || decode(t, list.Pods[1]).Status.Message != "hello" {
		t.Errorf("got %v, %v", list, err)
	}
	got, err := client.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: "uid-b"})
	if err != nil || decode(t, got.GetPod()).Name != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	for uid, want := range map[string]codes.Code{"": codes.NotFound, "uid-c": codes.NotFound, strings.Repeat("x", 1<<20): codes.ResourceExhausted} {
		if _, err := client.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: uid}); status.Code(err) != want {
			t.Errorf("UID of %d bytes: got %v, want %v", len(uid), err, want)
		}
	}
}

// A node that does not know its pods yet does not claim to have none.
func TestNothingIsAnsweredBeforeThePodsAreKnown(t *testing.T) {
	node := newFakeNode()
	node.unsynced = true
	client := serve(t, node, 0)()
	_, listed := client.ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
	_, got := client.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: "x"})
	stream, err := client.WatchPods(t.Context(), &podsv1alpha1.WatchPodsRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	for _, err := range []error{listed, got, err} {
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("got %v, want FailedPrecondition", err)
		}
	}
}

// next receives an event and says it as TYPE name message.
func next(t *testing.T, stream grpc.ServerStreamingClient[podsv1alpha1.WatchPodsEvent]) string {
	t.Helper()
	event, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if event.GetType() == podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE {
		return event.GetType().String()
	}
	pod := decode(t, event.GetPod())
	return strings.TrimSpace(fmt.Sprint(event.GetType(), " ", pod.Name, " ", pod.Status.Message))
}

func watch(t *testing.T, ctx context.Context, client podsv1alpha1.PodsClient) grpc.ServerStreamingClient[podsv1alpha1.WatchPodsEvent] {
	t.Helper()
	stream, err := client.WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestWatch(t *testing.T) {
	node := newFakeNode()
	node.set("a", "")
	node.set("b", "")
	stream := watch(t, t.Context(), serve(t, node, 0)())
	expect := func(want ...string) {
		t.Helper()
		for _, want := range want {
			if got := next(t, stream); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	expect("ADDED a", "ADDED b", "INITIAL_SYNC_COMPLETE")
	node.set("a", "1")
	expect("MODIFIED a 1")
	node.set("a", "1") // announced, but the same
	node.remove("b")
	expect("DELETED b")
	node.remove("nowhere")
	node.set("b", "again")
	expect("ADDED b again")
}

// A watcher that does not read holds up no other, and when it reads again it gets the last state of
// each pod and not each one between.
func TestASlowWatcherDelaysNoOtherAndGetsTheNewest(t *testing.T) {
	node := newFakeNode()
	large := strings.Repeat("x", 64<<10) // so that little fits into the connection
	const pods, rounds = 20, 30
	for i := range pods {
		node.set(fmt.Sprintf("p%02d", i), "0"+large)
	}
	connect := serve(t, node, 0)
	slow := watch(t, t.Context(), connect())
	next(t, slow) // it watches before anything changes, or it would begin with the last pod
	fast := watch(t, t.Context(), connect())
	for next(t, fast) != "INITIAL_SYNC_COMPLETE" {
	}
	for round := 1; round <= rounds; round++ {
		for i := range pods {
			node.set(fmt.Sprintf("p%02d", i), fmt.Sprint(round)+large)
			if got, want := next(t, fast), fmt.Sprintf("MODIFIED p%02d %d", i, round); !strings.HasPrefix(got, want) {
				t.Fatalf("got %.40q, want %s", got, want)
			}
		}
	}
	node.remove("p00")
	node.set("last", "")
	latest, events := map[string]string{}, 0
	for {
		kind, rest, _ := strings.Cut(next(t, slow), " ")
		name, message, _ := strings.Cut(rest, " ")
		if kind == "DELETED" {
			delete(latest, name)
		} else if name != "" {
			latest[name] = strings.TrimRight(message, "x")
		}
		if events++; name == "last" {
			break
		}
	}
	if len(latest) != pods { // without p00, with last
		t.Errorf("got %d pods, want %d", len(latest), pods)
	}
	for name, message := range latest {
		if name != "last" && message != fmt.Sprint(rounds) {
			t.Errorf("pod %s ends in round %s, want %d", name, message, rounds)
		}
	}
	if all := pods * rounds; events >= all {
		t.Errorf("the slow watcher got %d events, want fewer than %d", events, all)
	}
}

func TestWatchersAreLimitedAndVanish(t *testing.T) {
	node := newFakeNode()
	client := serve(t, node, 2)()
	first, cancelFirst := context.WithCancel(t.Context())
	one, two := watch(t, first, client), watch(t, t.Context(), client)
	next(t, one)
	next(t, two)
	if _, err := watch(t, t.Context(), client).Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one too many: got %v", err)
	}
	cancelFirst()
	if _, err := one.Recv(); !errors.Is(err, io.EOF) && status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	for { // the place is free once the server has noticed
		if _, err := watch(t, t.Context(), client).Recv(); err == nil {
			break
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
}
