package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/scenes"
)

const (
	costPods = 100
	// costSettle is left for what follows a start: a stock kubelet writes the status of each pod once more within
	// two minutes.
	costSettle = 2 * time.Minute
	// costWatched is how long the observer is watched.
	costWatched = 2 * time.Minute
)

// cost measures what an observer needs beside a node with 100 pods that only exist.
func cost(ctx context.Context, _ options, stage *scenes.Stage) error {
	names := make([]string, costPods)
	for i := range names {
		names[i] = fmt.Sprintf("idle-%d", i)
	}
	fmt.Printf("creating %d pods\n", costPods)
	const batch = 10 // what two cores can start at a time
	for i := 0; i < costPods; i += batch {
		if err := stage.Pods(ctx, names[i:i+batch]...); err != nil {
			return err
		}
	}
	if err := stage.Calm(ctx); err != nil {
		return err
	}
	fmt.Printf("waiting %v for things to settle, then watching for %v\n", costSettle, costWatched)
	if err := wait(ctx, costSettle); err != nil {
		return err
	}
	before, err := scrape(ctx, stage.Observer.Address)
	if err != nil {
		return err
	}
	if err := wait(ctx, costWatched); err != nil {
		return err
	}
	after, err := scrape(ctx, stage.Observer.Address)
	if err != nil {
		return err
	}
	growth := func(name string) float64 { return after[name] - before[name] }
	fmt.Printf("\nbeside a stock kubelet with %d idle pods, over %v:\n\n", costPods, costWatched)
	fmt.Printf("statusd observe      %8.2f %% of one CPU %8.1f MiB resident\n",
		100*growth("process_cpu_seconds_total")/costWatched.Seconds(), after["process_resident_memory_bytes"]/(1<<20))
	fmt.Printf("requests per minute  %8.1f to the API server %8.1f to the runtime (CRI)\n",
		growth("statusd_observe_api_requests_total")/costWatched.Minutes(), growth("statusd_observe_cri_calls_total")/costWatched.Minutes())
	fmt.Printf("audits               %8.1f per minute %8.2f ms each\n", growth("statusd_audit_duration_seconds_count")/costWatched.Minutes(),
		1000*growth("statusd_audit_duration_seconds_sum")/growth("statusd_audit_duration_seconds_count"))
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// scrape reads the metrics; those of one name are added up.
func scrape(ctx context.Context, address string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		n, err := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64)
		if err != nil {
			continue // a label with a space
		}
		values[name] += n
	}
	if len(values) == 0 {
		return nil, errors.New("the observer has no metrics")
	}
	return values, nil
}
