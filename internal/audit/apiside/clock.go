package apiside

import (
	"maps"
	"net/http"
	"sync"
	"time"
)

// clock measures how far the server's clock is ahead of this machine's, by the Date header of its answers. It
// also counts the requests.
type clock struct {
	next http.RoundTripper

	mu       sync.Mutex // guards what follows
	newest   measurement
	requests map[string]uint64
}

// measurement is one comparison of the two clocks.
type measurement struct {
	ahead, err time.Duration
	at         time.Time // zero if unknown
}

// resolution is the resolution of the Date header.
const resolution = time.Second

// clockLifetime is for how long a measurement is preferred to a newer, less exact one.
const clockLifetime = 10 * time.Second

// RoundTrip sends a request and compares the clocks.
func (c *clock) RoundTrip(request *http.Request) (*http.Response, error) {
	verb := request.Method
	if request.Method == http.MethodGet {
		verb = "LIST"
		if request.URL.Query().Get("watch") == "true" || request.URL.Query().Get("watch") == "1" {
			verb = "WATCH"
		}
	}
	c.mu.Lock()
	c.requests[verb]++
	c.mu.Unlock()
	sent := time.Now()
	response, err := c.next.RoundTrip(request)
	if err == nil {
		if m, ok := measure(sent, time.Now(), response.Header.Get("Date")); ok {
			c.add(m)
		}
	}
	return response, err
}

// WrappedRoundTripper returns the underlying transport, whose idle connections callers may close.
func (c *clock) WrappedRoundTripper() http.RoundTripper { return c.next }

// measure compares the clocks. The server has written the date, which is cut to a second, at some time between
// the two instants. A machine whose clock was set meanwhile measures nothing.
func measure(sent, received time.Time, date string) (measurement, bool) {
	server, err := http.ParseTime(date)
	if err != nil {
		return measurement{}, false
	}
	trip := received.Sub(sent) // by the monotonic clock
	wall := received.Round(0).Sub(sent.Round(0))
	if step := wall - trip; step.Abs() > resolution/10 {
		return measurement{}, false
	}
	middle := sent.Round(0).Add(trip / 2)
	return measurement{ahead: server.Add(resolution / 2).Sub(middle), err: resolution/2 + trip/2, at: received}, true
}

// add takes over a measurement unless a more exact one is young, and does not contradict it.
func (c *clock) add(m measurement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.newest
	contradicts := (m.ahead - old.ahead).Abs() > m.err+old.err
	if old.at.IsZero() || m.err <= old.err || contradicts || m.at.Sub(old.at) > clockLifetime {
		c.newest = m
	}
}

func (c *clock) measurement() measurement {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

func (c *clock) count() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}
