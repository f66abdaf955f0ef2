package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/statusd/statusd/test/campaign"
)

// The requests that are counted.
func all(resource, _ string) bool { return true }
func besidesLeases(resource, verb string) bool {
	return resource != "leases" && !(resource == "pods" && verb == "PATCH") // which are flaps
}
func ofPods(resource, verb string) bool {
	return resource == "pods" && verb != "WATCH" && verb != "LIST"
}

// deletionVerbs are the requests of a pod's deletion that are counted; each pod has one DELETE of the measurement.
var deletionVerbs = []string{"GET", "PATCH", "DELETE"}

// countVerbs counts the requests of deletionVerbs for pods.
func (m *measurement) countVerbs(ctx context.Context) ([]float64, error) {
	counts := make([]float64, len(deletionVerbs))
	for i, verb := range deletionVerbs {
		var err error
		if counts[i], err = m.count(ctx, func(resource, of string) bool { return resource == "pods" && of == verb }); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// count reads how many requests the server has served.
func (m *measurement) count(ctx context.Context, counts func(resource, verb string) bool) (float64, error) {
	return m.metric(ctx, "apiserver_request_total{", func(labels string) bool { return counts(label(labels, "resource"), label(labels, "verb")) })
}

// serverCPU reads how much processor time the server has used, etcd in it included.
func (m *measurement) serverCPU(ctx context.Context) (time.Duration, error) {
	seconds, err := m.metric(ctx, "process_cpu_seconds_total ", func(string) bool { return true })
	return time.Duration(seconds * float64(time.Second)), err
}

// metric adds up the samples of the server's metrics that begin with a name and are counted.
func (m *measurement) metric(ctx context.Context, name string, counts func(labels string) bool) (float64, error) {
	body, err := m.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for line := range strings.Lines(string(body)) {
		labels, ok := strings.CutPrefix(line, name)
		if !ok || !counts(labels) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func (m *measurement) requestsPerSecond(ctx context.Context, d time.Duration, counts func(resource, verb string) bool) (float64, error) {
	before, err := m.count(ctx, counts)
	if err != nil {
		return 0, err
	}
	if err := campaign.Pause(ctx, d); err != nil {
		return 0, err
	}
	after, err := m.count(ctx, counts)
	return (after - before) / d.Seconds(), err
}
