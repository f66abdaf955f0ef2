//go:build real

package alertmanager

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statusd/statusd/test/alertmanagertest"
)

// door stands before an Alertmanager that comes and goes, so that its address stays the same.
type door struct {
	*httptest.Server
	target atomic.Pointer[httputil.ReverseProxy] // nil: 502
}

func newDoor(t *testing.T) *door {
	d := &door{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := d.target.Load()
		if target == nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		target.ServeHTTP(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *door) open(t *testing.T, p *alertmanagertest.Process) {
	t.Helper()
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	d.target.Store(proxy)
}

func start(t *testing.T, dir string, sink *httptest.Server) *alertmanagertest.Process {
	t.Helper()
	p, err := alertmanagertest.Start(dir, alertmanagertest.Config(sink.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func byPod(labels map[string]string) string { return labels["alertname"] + "/" + labels["pod"] }

// await waits until the sink has last got the alerts in these states.
func await(t *testing.T, sink *alertmanagertest.Sink, want map[string]string) {
	t.Helper()
	err := sink.Wait(t.Context(), func(messages []alertmanagertest.Message) bool {
		last := alertmanagertest.Last(messages, byPod)
		for key, status := range want {
			if last[key] != status {
				return false
			}
		}
		return true
	})
	if err != nil {
		t.Fatalf("want %v, got %v", want, alertmanagertest.Last(sink.Messages(), byPod))
	}
}

func TestRealAlertmanager_FiresGroupsAndResolves(t *testing.T) {
	sink := alertmanagertest.NewSink()
	server := httptest.NewServer(sink)
	defer server.Close()
	p := start(t, t.TempDir(), server)
	output := run(t, to(p.URL))
	first := firing("PodStuck", "a")
	output.Notify(first)
	output.Notify(firing("PodStuck", "b"))
	output.Notify(firing("PodFlaps", "a"))
	await(t, sink, map[string]string{"PodStuck/a": "firing", "PodStuck/b": "firing", "PodFlaps/a": "firing"})

	groups, err := p.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for _, group := range groups {
		sizes[group.Labels["alertname"]] = len(group.Alerts)
	}
	if fmt.Sprint(sizes) != "map[PodFlaps:1 PodStuck:2]" {
		t.Errorf("groups have %v alerts, want two of PodStuck and one of PodFlaps", sizes)
	}
	output.Notify(resolved(first))
	await(t, sink, map[string]string{"PodStuck/a": "resolved", "PodStuck/b": "firing"})
}

func TestRealAlertmanager_SurvivesItsRestart(t *testing.T) {
	sink := alertmanagertest.NewSink()
	server := httptest.NewServer(sink)
	defer server.Close()
	dir, d := t.TempDir(), newDoor(t)
	p := start(t, dir, server)
	d.open(t, p)
	options := to(d.URL)
	options.Repeat = 200 * time.Millisecond // else a restart in which nothing happens is noticed after a minute
	output := run(t, options)
	a, b := firing("PodStuck", "a"), firing("PodStuck", "b")
	output.Notify(a)
	await(t, sink, map[string]string{"PodStuck/a": "firing"})

	d.target.Store(nil)
	p.Kill() // it does not keep alerts itself
	output.Notify(b)
	p = start(t, dir, server)
	d.open(t, p)
	await(t, sink, map[string]string{"PodStuck/a": "firing", "PodStuck/b": "firing"})
	output.Notify(resolved(a))
	output.Notify(resolved(b))
	await(t, sink, map[string]string{"PodStuck/a": "resolved", "PodStuck/b": "resolved"})
}

func TestRealAlertmanager_SurvivesOurRestart(t *testing.T) {
	sink := alertmanagertest.NewSink()
	server := httptest.NewServer(sink)
	defer server.Close()
	p := start(t, t.TempDir(), server)
	a := firing("PodStuck", "a")
	t.Run("before", func(t *testing.T) {
		run(t, to(p.URL)).Notify(a)
		await(t, sink, map[string]string{"PodStuck/a": "firing"})
	})
	output := run(t, to(p.URL)) // another process, which knows the alert from its state
	again := a
	again.Again = true
	output.Notify(again)
	output.Notify(resolved(a))
	await(t, sink, map[string]string{"PodStuck/a": "resolved"})
}
