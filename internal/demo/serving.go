package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/api"
	"github.com/statusd/statusd/eviction"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/runtimefake"
)

const (
	servingPods    = 500
	servingChanges = 20 // ends of containers a second
	servingPhase   = 30 * time.Second
	scrapeEvery    = 5 * time.Second
)

// serving measures how far a client of the stream is behind, and what serving it costs: a node of
// this process with 500 pods of a fake runtime, of which 20 a second end. The CPU is that of the whole
// process, so the client's is in it too.
func (d *demo) serving(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "statusd-serving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config, err := servingConfig(dir)
	if err != nil {
		return err
	}
	rt := runtimefake.New()
	node, err := agent.New(config, agent.Options{Runtime: rt, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- node.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-done)
	}()
	m := &lagMeter{rt: rt, address: "http://" + node.Address(), ended: map[string]time.Time{}}
	if err := m.awaitRunning(ctx); err != nil {
		return err
	}
	d.say("%d pods run; %d of their containers end each second, and %s pass with each kind of client", servingPods, servingChanges, servingPhase)
	for _, phase := range []struct {
		name   string
		stream bool
		scrape bool
	}{{"no client", false, false}, {"one stream", true, false}, {"one stream, scrapes", true, true}} {
		cpu, err := m.phase(ctx, phase.stream, phase.scrape)
		if err != nil {
			return err
		}
		lag := ""
		if phase.stream {
			lag = m.report()
		}
		d.say("%-22s %6.2f %% of one CPU  %s", phase.name, 100*cpu.Seconds()/servingPhase.Seconds(), lag)
	}
	return nil
}

func servingConfig(dir string) (agent.Config, error) {
	config := agent.Default()
	config.NodeName, config.StateDir, config.Manifests = "local", filepath.Join(dir, "state"), filepath.Join(dir, "manifests")
	config.HealthzBindAddress, config.Server.BindAddress, config.CgroupParent = "127.0.0.1:0", "", ""
	config.Node.MaxPods = servingPods
	config.Eviction.Hard = eviction.Disabled()
	if err := os.Mkdir(config.Manifests, 0o755); err != nil {
		return config, err
	}
	for i := range servingPods {
		name := fmt.Sprintf("pod-%03d", i)
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: main, image: host}]}\n", name)
		if err := os.WriteFile(filepath.Join(config.Manifests, name+".yaml"), []byte(text), 0o644); err != nil {
			return config, err
		}
	}
	return config, nil
}

// lagMeter ends containers and notes when a client of the stream learns of it.
type lagMeter struct {
	rt      *runtimefake.Runtime
	address string

	mu    sync.Mutex // guards what follows
	ended map[string]time.Time
	lags  []time.Duration
}

// awaitRunning waits until all pods serve.
func (m *lagMeter) awaitRunning(ctx context.Context) error {
	client, err := api.NewClient(m.address)
	if err != nil {
		return err
	}
	defer client.Close()
	ready := map[string]bool{}
	for event, err := range client.Watch(ctx, "", "") {
		if err != nil {
			return err
		}
		var row api.PodSummary
		if event.Kind == "pod" && json.Unmarshal(event.Data, &row) == nil && row.Ready == 1 {
			ready[row.Name] = true
		}
		if len(ready) == servingPods {
			return nil
		}
	}
	return ctx.Err()
}

// phase lets containers end for a while and returns the CPU time that passed.
func (m *lagMeter) phase(ctx context.Context, stream, scrape bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, servingPhase)
	defer cancel()
	var clients sync.WaitGroup
	defer clients.Wait()
	if stream {
		synced := make(chan struct{})
		clients.Go(func() { m.follow(ctx, synced) })
		select {
		case <-synced:
		case <-ctx.Done():
			return 0, errors.New("the stream did not begin")
		}
	}
	if scrape {
		clients.Go(func() { m.scrape(ctx) })
	}
	m.mu.Lock()
	m.lags, m.ended = nil, map[string]time.Time{}
	m.mu.Unlock()
	before := cpuTime()
	ticker := time.NewTicker(time.Second / servingChanges)
	defer ticker.Stop()
	for next := 0; ; {
		select {
		case <-ctx.Done():
			return cpuTime() - before, nil
		case <-ticker.C:
			var err error
			if next, err = m.endOne(ctx, next); err != nil && ctx.Err() == nil {
				return 0, err
			}
		}
	}
}

// endOne ends the container of the next pod that runs.
func (m *lagMeter) endOne(ctx context.Context, next int) (int, error) {
	all, err := m.rt.Pods(ctx)
	if err != nil {
		return next, err
	}
	for range all {
		next = (next + 1) % len(all)
		pod := all[next]
		i := slices.IndexFunc(pod.Containers, func(c runtime.Container) bool { return c.State == runtime.Running })
		if i < 0 {
			continue
		}
		m.mu.Lock()
		m.ended[pod.Manifest.Name] = time.Now()
		m.mu.Unlock()
		m.rt.Exit(pod.Containers[i].ID, runtimefake.Exit{Code: 1})
		return next, nil
	}
	return next, nil
}

// follow notes when ends arrive.
func (m *lagMeter) follow(ctx context.Context, synced chan<- struct{}) {
	client, err := api.NewClient(m.address)
	if err != nil {
		return
	}
	defer client.Close()
	for event, err := range client.Watch(ctx, "", "") {
		if err != nil {
			return
		}
		if event.Kind == "synced" {
			close(synced)
		}
		var row api.PodSummary
		if event.Kind != "pod" || json.Unmarshal(event.Data, &row) != nil || row.Phase == v1.PodRunning && row.Status == "Running" {
			continue
		}
		m.mu.Lock()
		if at, ok := m.ended[row.Name]; ok {
			m.lags = append(m.lags, time.Since(at))
			delete(m.ended, row.Name)
		}
		m.mu.Unlock()
	}
}

// scrape reads the metrics as Prometheus does, and lists the pods.
func (m *lagMeter) scrape(ctx context.Context) {
	for {
		for _, path := range []string{"/metrics", "/apis/v1/pods"} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.address+path, nil)
			if err != nil {
				return
			}
			if response, err := http.DefaultClient.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		if pause(ctx, scrapeEvery) != nil {
			return
		}
	}
}

func (m *lagMeter) report() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lags) == 0 {
		return "no change arrived"
	}
	slices.Sort(m.lags)
	at := func(q float64) time.Duration {
		return m.lags[min(len(m.lags)-1, int(q*float64(len(m.lags))))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("lag p50 %s  p99 %s  max %s  (%d changes, %d not arrived)", at(0.5), at(0.99), at(1), len(m.lags), len(m.ended))
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
