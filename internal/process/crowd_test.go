package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/statusd/statusd/test/patience"
)

// crowds are what a local user can do with a connection.
var crowds = map[string]string{
	"silent":      "",
	"slow header": "GET /healthz HTTP/1.1\r\nHost: loc",
	"kept open":   "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"not read":    "GET /data HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"watching":    "GET /apis/v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n",
}

// unread is more than the kernel keeps for a client that does not read. All answers share it: one for each of 256 connections
// would be gigabytes under the race detector.
var unread = make([]byte, 16<<20)

// served runs endpoints on loopback: a query API with a few watches and a large answer.
func served(t *testing.T) (address string) {
	t.Helper()
	const maxWatches = 4
	watches := make(chan struct{}, maxWatches)
	e := &Endpoints{Alive: func() {}, Metrics: prometheus.NewRegistry(), Pending: func() any { return nil }, Query: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/data":
			_, _ = w.Write(unread)
		case "/apis/v1/watch":
			select {
			case watches <- struct{}{}:
				defer func() { <-watches }()
			default:
				http.Error(w, "too many", http.StatusTooManyRequests)
				return
			}
			fmt.Fprintln(w, "watching")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprintln(w, "query")
		}
	})}
	var fronts Fronts
	front, err := fronts.Listen("127.0.0.1:0", "healthz-bind-address")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- front.Serve(ctx, e) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return front.Address()
}

// Thousands of connections that any local user can open do not block health, metrics and the query API. Where connections queue
// for a place, the request below comes after all of them.
func TestCrowdOfConnections_KeepsNobodyOut(t *testing.T) {
	for name, request := range crowds {
		t.Run(name, func(t *testing.T) {
			address := served(t)
			watch := ask(t, address, "/apis/v1/watch")
			crowd := make([]net.Conn, 0, 3000)
			defer func() {
				for _, conn := range crowd {
					conn.Close()
				}
			}()
			for range cap(crowd) {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(conn, request) // it may be closed by now
				crowd = append(crowd, conn)
			}
			for path, want := range map[string]int{"/healthz": 200, "/livez": 200, "/metrics": 200, "/apis/v1/pods": 200} {
				if got := ask(t, address, path).status; got != want {
					t.Errorf("%s: status %d, want %d", path, got, want)
				}
			}
			if line, err := watch.body.ReadString('\n'); err != nil || line != "watching\n" {
				t.Errorf("a watch of before: %q, %v; want it to go on", line, err)
			}
			if err := watch.conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := watch.body.ReadByte(); err == nil || err == io.EOF {
				t.Errorf("a watch of before ended with %v", err)
			}
		})
	}
}

type answered struct {
	status int
	conn   net.Conn
	body   *bufio.Reader
}

// ask makes one request on a connection of its own.
func ask(t *testing.T, address, path string) answered {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := patience.Context(t)
	t.Cleanup(cancel)
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return answered{response.StatusCode, conn, bufio.NewReader(response.Body)}
}

// Other machines share the places: one that takes all of them loses its own first.
func TestCrowd_TakesThePlaceOfTheClientWithTheMost(t *testing.T) {
	c := newCrowd(nil)
	add := func(peer string, asks bool, since int) *guest {
		g := &guest{of: c, peer: peer, asks: asks, since: time.Unix(int64(since), 0)}
		c.guests[g] = struct{}{}
		return g
	}
	oldest := add("10.0.0.1", false, 1)
	add("10.0.0.1", true, 2)
	asking := add("10.0.0.2", true, 0)
	silent := add("10.0.0.2", false, 9)
	staysForEver := add("10.0.0.2", false, 0)
	staysForEver.stays = true
	add("10.0.0.2", true, 3)
	for _, want := range []*guest{silent, oldest} {
		got := c.victim()
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		delete(c.guests, got)
	}
	if got := c.victim(); got != asking {
		t.Errorf("got %+v, want the client that has asked for the longest time", got)
	}
}
