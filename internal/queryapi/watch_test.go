package queryapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/podstatus"
)

// client is the other end of a watch, without a network: it takes what is written as fast as it wants.
type client struct {
	code   int
	header http.Header
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex // guards text
	text strings.Builder
	// gate, if there is one, is received from before each write is taken.
	gate chan struct{}
}

func (c *client) Header() http.Header  { return c.header }
func (c *client) WriteHeader(code int) { c.code = code }
func (c *client) Flush()               {}
func (c *client) Write(data []byte) (int, error) {
	if c.gate != nil {
		<-c.gate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(data)
}

// take returns the events that have come since the last call.
func (c *client) take() []sse {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.text.String()
	c.text.Reset()
	return parseEvents(text)
}

func (c *client) leave() {
	c.cancel()
	<-c.done
}

// watch begins a watch. A slow client takes nothing until its gate is closed.
func watch(t *testing.T, s *queryapi.Server, target, last string, slow bool) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &client{header: http.Header{}, cancel: cancel, done: make(chan struct{})}
	if slow {
		c.gate = make(chan struct{})
	}
	header := http.Header{}
	if last != "" {
		header.Set("Last-Event-ID", last)
	}
	go func() {
		defer close(c.done)
		s.Handler().ServeHTTP(c, request("", target, header).WithContext(ctx))
	}()
	return c
}

// bubble runs a test with a node and a server in virtual time.
func bubble(t *testing.T, change func(*queryapi.Options), test func(*testing.T, *fakeNode, *queryapi.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node := newFakeNode(time.Now)
		s := newServer(t, node, func(o *queryapi.Options) {
			o.Heartbeat = time.Hour
			if change != nil {
				change(o)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		test(t, node, s)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func expect(t *testing.T, events []sse, want string) {
	t.Helper()
	if got := kinds(events); got != want {
		t.Errorf("got events %q, want %q", got, want)
	}
}

func TestAWatchBeginsWithAListAndFollowsChanges(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("a"))
		node.set(running("b"))
		c := watch(t, s, "/apis/v1/watch", "", false)
		expect(t, c.take(), "reset pod pod node synced")
		node.set(running("a", restarts(1)))
		events := c.take()
		expect(t, events, "pod")
		var row view.PodSummary
		if err := json.Unmarshal([]byte(events[0].data), &row); err != nil || row.Name != "a" || row.Restarts != 1 {
			t.Errorf("got %+v, %v", row, err)
		}
		node.remove("uid-b")
		events = c.take()
		expect(t, events, "gone")
		if want := `{"namespace":"default","name":"b","uid":"uid-b"}`; events[0].data != want {
			t.Errorf("got %s, want %s", events[0].data, want)
		}
		time.Sleep(2 * time.Second) // the node has a pod less
		expect(t, c.take(), "node")
		c.leave()
	})
}

func TestAWatchResumes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		for _, name := range []string{"a", "b", "c"} {
			node.set(running(name))
		}
		c := watch(t, s, "/apis/v1/watch", "", false)
		events := c.take()
		c.leave()
		last := events[len(events)-1].id
		node.set(running("a", restarts(1)))
		node.set(running("a", restarts(2)))
		node.remove("uid-b")

		c = watch(t, s, "/apis/v1/watch", last, false)
		events = c.take()
		expect(t, events, "pod gone node synced")
		if !strings.Contains(events[0].data, `"restarts":2`) {
			t.Errorf("got %s, want the newest", events[0].data)
		}
		c.leave()
		// In the middle of a list it goes on with the rest of it.
		c = watch(t, s, "/apis/v1/watch?since="+events[0].id, "", false)
		expect(t, c.take(), "gone node synced")
		c.leave()
		// A revision of another process, or of the future, begins with a list.
		for _, odd := range []string{"other-5", "e1-99999"} {
			c = watch(t, s, "/apis/v1/watch", odd, false)
			expect(t, c.take(), "reset pod pod node synced")
			c.leave()
		}
	})
}

// A list and a watch from its revision miss nothing and repeat nothing.
func TestAWatchGoesOnFromAList(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("a"))
		list := &client{header: http.Header{}}
		s.Handler().ServeHTTP(list, request("", "/apis/v1/pods", nil))
		var got view.PodList
		if err := json.Unmarshal([]byte(list.text.String()), &got); err != nil || len(got.Items) != 1 {
			t.Fatalf("got %s, %v", list.text.String(), err)
		}
		node.set(running("b"))
		c := watch(t, s, "/apis/v1/watch?since="+got.Revision, "", false)
		expect(t, c.take(), "pod node synced")
		c.leave()
	})
}

// That time passes is no event; that what was waited for has not come is one at most.
func TestTimeAloneCausesNoEndOfEvents(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("loop", looping(time.Now().Add(38*time.Second))))
		c := watch(t, s, "/apis/v1/watch", "", false)
		expect(t, c.take(), "reset pod node synced")
		time.Sleep(30 * time.Second)
		expect(t, c.take(), "")
		node.set(running("loop", looping(time.Now().Add(8*time.Second)))) // announced, but the same
		expect(t, c.take(), "")
		time.Sleep(time.Hour)
		if events := c.take(); len(events) > 1 {
			t.Errorf("got %s in an hour in which nothing happened", kinds(events))
		}
		c.leave()
	})
}

func TestASlowWatcherDelaysNoOtherAndGetsTheNewest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		const pods, changes = 200, 50
		for i := range pods {
			node.set(running(fmt.Sprintf("p%03d", i)))
		}
		slow := watch(t, s, "/apis/v1/watch", "", true)
		fast := watch(t, s, "/apis/v1/watch", "", false)
		if events := fast.take(); len(events) != pods+3 {
			t.Fatalf("got %d events, want the events of a list", len(events))
		}
		for i := range changes {
			node.set(running("p000", restarts(i+1)))
			if events := fast.take(); len(events) == 0 || events[0].kind != "pod" {
				t.Fatalf("change %d does not reach a fast watcher beside a slow one", i)
			}
			time.Sleep(50 * time.Millisecond)
		}
		node.remove("uid-p001")
		synctest.Wait()
		close(slow.gate)
		latest, ofOne := map[string]view.PodSummary{}, 0
		for _, e := range slow.take() {
			var row view.PodSummary
			if err := json.Unmarshal([]byte(e.data), &row); err != nil {
				t.Fatal(err)
			}
			switch e.kind {
			case "pod":
				latest[row.Name] = row
				if row.Name == "p000" {
					ofOne++
				}
			case "gone":
				delete(latest, row.Name)
			}
		}
		if _, there := latest["p001"]; len(latest) != pods-1 || there || latest["p000"].Restarts != changes {
			t.Errorf("the slow watcher ends with %d pods, p001 among them: %v, p000 restarted %d times; want %d, false, %d",
				len(latest), there, latest["p000"].Restarts, pods-1, changes)
		}
		if ofOne > 2 {
			t.Errorf("the slow watcher got %d events of one pod, want them coalesced", ofOne)
		}
		slow.leave()
		fast.leave()
	})
}

// Each changed pod is computed once, however many watch; without watchers it is not computed at all.
func TestTheWorkDoesNotGrowWithWatchers(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		for i := range 50 {
			node.set(running(fmt.Sprintf("p%d", i)))
		}
		synctest.Wait()
		if asked := node.questions(); asked != 0 {
			t.Errorf("%d pods were computed without a watcher", asked)
		}
		var watchers []*client
		for range 20 {
			watchers = append(watchers, watch(t, s, "/apis/v1/watch", "", false))
			synctest.Wait()
		}
		before := node.questions()
		node.set(running("p0", restarts(1)))
		synctest.Wait()
		if asked := node.questions() - before; asked != 1 {
			t.Errorf("one change caused %d looks at pods, want 1", asked)
		}
		for _, c := range watchers {
			c.leave()
		}
	})
}

func TestWatchersAreLimited(t *testing.T) {
	bubble(t, func(o *queryapi.Options) { o.MaxWatchers = 3 }, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		var watchers []*client
		for range 3 {
			watchers = append(watchers, watch(t, s, "/apis/v1/watch", "", false))
		}
		synctest.Wait()
		for range 10_000 {
			refused := watch(t, s, "/apis/v1/watch", "", false)
			<-refused.done
			if refused.code != http.StatusTooManyRequests || refused.header.Get("Retry-After") == "" || !strings.Contains(refused.text.String(), `"reason":"TooManyRequests"`) {
				t.Fatalf("one too many: got %d %v %s", refused.code, refused.header, refused.text.String())
			}
		}
		watchers[0].leave()
		c := watch(t, s, "/apis/v1/watch", "", false)
		expect(t, c.take(), "reset node synced")
		c.leave()
		watchers[1].leave()
		watchers[2].leave()
	})
}

func TestTheEndOfTheServerEndsWatches(t *testing.T) {
	var c *client
	synctest.Test(t, func(t *testing.T) {
		node := newFakeNode(time.Now)
		s := newServer(t, node)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		c = watch(t, s, "/apis/v1/watch", "", false)
		synctest.Wait()
		cancel()
		<-c.done
		<-ended
	})
}

func TestAQuietWatchSendsHeartbeats(t *testing.T) {
	bubble(t, func(o *queryapi.Options) { o.Heartbeat = 15 * time.Second }, func(t *testing.T, _ *fakeNode, s *queryapi.Server) {
		c := watch(t, s, "/apis/v1/watch", "", false)
		c.take()
		time.Sleep(46 * time.Second)
		synctest.Wait()
		if got, want := c.text.String(), strings.Repeat(":\n\n", 3); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		c.leave()
	})
}

func TestAWatchOfOnePodSendsEverything(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("a"))
		node.set(running("b"))
		c := watch(t, s, "/apis/v1/watch?pod=default/a", "", false)
		events := c.take()
		expect(t, events, "detail")
		if !strings.Contains(events[0].data, `"containerDetails":[{"name":"main"`) {
			t.Errorf("got %s", events[0].data)
		}
		node.set(running("b", restarts(1)))
		expect(t, c.take(), "")
		node.set(running("a")) // announced, but the same
		expect(t, c.take(), "")
		// What the row does not show, the detail does.
		node.set(running("a", func(p *view.Pod) {
			p.Facts.Containers = map[string]explain.Container{"main": {Liveness: &podstatus.Probe{Failures: 1, Answer: "refused"}}}
		}))
		expect(t, c.take(), "detail")
		node.remove("uid-a")
		expect(t, c.take(), "gone")
		again := running("a")
		again.Facts.Pod = again.Facts.Pod.DeepCopy()
		again.Facts.Pod.UID = "uid-a-2"
		node.set(again)
		expect(t, c.take(), "detail")
		c.leave()
	})
}

// The ends of more pods than are remembered begin a watch with a list.
func TestAWatcherThatMissedTooMuchGetsAList(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("stays"))
		c := watch(t, s, "/apis/v1/watch", "", false)
		events := c.take()
		for i := range 1500 {
			node.set(running(fmt.Sprintf("p%d", i)))
			synctest.Wait()
			node.remove(running(fmt.Sprintf("p%d", i)).Facts.Pod.UID)
			synctest.Wait()
		}
		c.leave()
		c = watch(t, s, "/apis/v1/watch", events[len(events)-1].id, false)
		expect(t, c.take(), "reset pod node synced")
		c.leave()
	})
}

// What a source does not announce is found while there are watchers.
func TestWatch_ChangesWithoutAnnouncement_AreFound(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("a"))
		node.set(running("b"))
		c := watch(t, s, "/apis/v1/watch", "", false)
		c.take()
		node.mu.Lock()
		node.pods["uid-a"] = running("a", restarts(1))
		delete(node.pods, "uid-b")
		node.mu.Unlock()
		time.Sleep(6 * time.Second)
		if got := kinds(c.take()); !strings.Contains(got, "pod") || !strings.Contains(got, "gone") {
			t.Errorf("got %q", got)
		}
		c.leave()
	})
}
