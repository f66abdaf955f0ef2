package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/test/campaign"
)

// probed is how many pods lose readiness while others start, one after the other.
const probed = 10

func probedName(i int) string { return fmt.Sprintf("probed-%d", i) }

// answers is the server of the readiness probes of the probed pods.
type answers struct {
	server   *http.Server
	port     int
	mu       sync.Mutex
	failing  map[string]bool
	failures map[string]time.Time // when a pod's probe has failed first
}

func listenForProbes() (*answers, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &answers{port: listener.Addr().(*net.TCPAddr).Port, failing: map[string]bool{}, failures: map[string]time.Time{}}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: time.Minute}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

func (a *answers) close() { _ = a.server.Close() }

// probe is the readiness probe of a pod: it fails as soon as the pod is told to fail.
func (a *answers) probe(pod string) *v1.Probe {
	return &v1.Probe{
		ProbeHandler:  v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Host: "127.0.0.1", Port: intstr.FromInt(a.port), Path: "/" + pod}},
		PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 30,
	}
}

// ServeHTTP answers the probe of the pod that the path names.
func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pod := strings.TrimPrefix(r.URL.Path, "/")
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.failing[pod] {
		return
	}
	if a.failures[pod].IsZero() {
		a.failures[pod] = time.Now()
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// fail lets the probes of a pod fail from now on.
func (a *answers) fail(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failing[pod] = true
}

// awaitProbed waits until all probed pods are ready.
func awaitProbed(ctx context.Context, seen <-chan sight) error {
	ready := map[string]bool{}
	err := await(ctx, seen, func(s sight) bool {
		if s.ready {
			ready[s.name] = true
		}
		return len(ready) == probed
	})
	if err != nil {
		return fmt.Errorf("the pods with a probe are not ready: %w", err)
	}
	return nil
}

// awaitStart waits until all pods of a start are ready. Meanwhile it lets the probed pods fail, one after the other, and it returns
// when each pod was seen ready, and how long after its probe had failed each probed pod was seen unready.
func (a *answers) awaitStart(ctx context.Context, seen <-chan sight, pods int, title string) (map[string]time.Time, []time.Duration, error) {
	ready, lost := map[string]time.Time{}, map[string]time.Time{}
	failing := 0
	err := await(ctx, seen, func(s sight) bool {
		switch {
		case !strings.HasPrefix(s.name, "probed-"):
			if s.ready && ready[s.name].IsZero() {
				ready[s.name] = s.at
			}
		case !s.ready && lost[s.name].IsZero():
			lost[s.name] = s.at
		}
		if failing < probed && len(ready) >= pods*(failing+1)/(probed+1) {
			a.fail(probedName(failing))
			failing++
		}
		campaign.Out.Set("%s: %d of %d pods ready", title, len(ready), pods)
		return len(ready) == pods && len(lost) == probed
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%d of %d pods are ready, %d of %d are unready: %w", len(ready), pods, len(lost), probed, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var delays []time.Duration
	for name, at := range lost {
		delays = append(delays, at.Sub(a.failures[name]))
	}
	return ready, delays, nil
}
