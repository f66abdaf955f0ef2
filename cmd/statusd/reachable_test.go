package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/statusd/statusd/internal/unixsocket"
)

// Probes, scrapes and clients of the query API that come while another config is loaded get an answer, each on a connection of its own.
func TestReload_EndpointsStayReachable(t *testing.T) {
	d := newDaemon(t, "reachable")
	d.manifest("static.yaml", staticManifest("static"))
	d.start()
	until(t, "the pod is ready", func() bool { return d.ready("static-reachable") })
	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return unixsocket.Dial(ctx, d.config.QuerySocketPath())
	}}}
	tcp := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var askers sync.WaitGroup
	failures := make(chan string, 100) // what is beyond is more of the same
	ask := func(client *http.Client, path string) {
		for asked := 0; ctx.Err() == nil; asked++ {
			if err := answers(ctx, client, "http://"+d.config.HealthzBindAddress+path); err != nil && ctx.Err() == nil {
				select {
				case failures <- fmt.Sprintf("request %d of %s: %v", asked, path, err):
				default:
				}
			}
		}
	}
	for _, path := range []string{"/healthz", "/livez", "/metrics", "/apis/v1/pods"} {
		askers.Go(func() { ask(tcp, path) })
		askers.Go(func() { ask(socket, path) })
	}
	for i := range 5 {
		d.config.ShutdownTimeout++
		d.configFile()
		d.signal(syscall.SIGHUP)
		until(t, "the reload is over", func() bool { return strings.Count(d.logged(), "msg=starting") > i+1 })
	}
	cancel()
	askers.Wait()
	close(failures)
	for failure := range failures {
		t.Error(failure)
	}
	d.stop()
}

func answers(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status + ": " + string(body))
	}
	return err
}
