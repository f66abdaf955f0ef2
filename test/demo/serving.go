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
	"github.com/statusd/statusd/internal/node/eviction"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/run"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/internal/view"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/test/campaign"
)

const (
	servingPods    = 500
	servingChanges = 20 // ends of containers a second
	servingPhase   = 30 * time.Second
	scrapeEvery    = 5 * time.Second
)

// serving measures how far a client of the stream is behind, and what serving costs: a node of this
// process with 500 pods of a fake runtime, 20 of them ending per second. The CPU time of the whole
// process counts, including the client's.
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
	m := &lagMeter{rt: runtimefake.New(), ended: map[string]time.Time{}}
	stop, err := m.start(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
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

func servingConfig(dir string) (run.Config, error) {
	config := run.Default()
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

// lagMeter ends containers and records when a client of the stream receives the change.
type lagMeter struct {
	rt      *runtimefake.Runtime
	address string

	mu    sync.Mutex // guards what follows
	ended map[string]time.Time
	lags  []time.Duration
}

// start runs a node with the pods of a fake runtime, and returns when they serve.
func (m *lagMeter) start(ctx context.Context, config run.Config) (stop func() error, err error) {
	node, err := run.New(config, agent.Options{Runtime: m.rt, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- node.Run(running) }()
	stop = func() error {
		cancel()
		return <-done
	}
	m.address = "http://" + node.Address()
	if err := m.awaitRunning(ctx); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// awaitRunning waits until all pods serve.
func (m *lagMeter) awaitRunning(ctx context.Context) error {
	client, err := queryapi.NewClient(m.address)
	if err != nil {
		return err
	}
	defer client.Close()
	ready := map[string]bool{}
	for event, err := range client.Watch(ctx, "", "") {
		if err != nil {
			return err
		}
		var row view.PodSummary
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
	client, err := queryapi.NewClient(m.address)
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
		var row view.PodSummary
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
		if campaign.Pause(ctx, scrapeEvery) != nil {
			return
		}
	}
}

func (m *lagMeter) report() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("lag %s  (%d changes, %d not arrived)", campaign.Spread(m.lags), len(m.lags), len(m.ended))
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
