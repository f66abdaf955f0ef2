package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
)

// The names and units are those that readers of build/bench.json rely on.
func TestResultsHaveTheNamesAndUnitsThatReadersRelyOn(t *testing.T) {
	want := []string{
		"burst updates/s", "burst_2000 updates/s", "burst_qps50 updates/s", "rtt50 updates/s", "rtt200 updates/s",
		"burst_request ms", "burst_2000_request ms", "rtt50_request ms", "rtt200_request ms",
		"withdrawals_in_burst ms, p50", "withdrawals_in_burst_p99 ms, p99",
		"withdrawals_in_burst_queue ms, p50", "withdrawals_in_burst_queue_p99 ms, p99",
		"withdrawals_in_burst_qps50 ms, p50", "withdrawals_in_burst_qps50_p99 ms, p99",
		"withdrawals_in_burst_qps50_queue ms, p50", "withdrawals_in_burst_qps50_queue_p99 ms, p99",
		"withdrawals_in_burst_rtt50 ms, p50", "withdrawals_in_burst_rtt50_p99 ms, p99",
		"withdrawals_in_burst_rtt50_queue ms, p50", "withdrawals_in_burst_rtt50_queue_p99 ms, p99",
		"flapping ms, max", "flapping_p50 ms, p50", "writes_per_life writes", "requests_per_life requests",
		"urgent_in_burst ms", "urgent_in_burst_qps50 ms", "churn ms, p99", "requests_per_change requests",
		"set_unchanged ns", "set_changed ns", "readiness_flip ns", "get ns",
		"set_unchanged_history ns", "set_changed_history ns", "readiness_flip_history ns", "memory_per_pod_history bytes",
		"set_unchanged_history_allocs allocs", "set_changed_history_allocs allocs", "readiness_flip_history_allocs allocs",
		"set_unchanged_allocs allocs", "set_changed_allocs allocs", "readiness_flip_allocs allocs", "get_allocs allocs",
		"growth_100 µs", "growth_1000 µs", "growth_10000 µs", "growth_100000 µs", "full_pass_1000 ms",
		"patch ns", "patch_allocs allocs", "allocation_10 µs", "allocation_100 µs", "allocation_1000 µs", "memory_per_pod bytes",
	}
	var got []string
	for _, s := range scenarios() {
		for _, y := range s.yields {
			got = append(got, y.name+" "+y.unit)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("results:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestRoundsAlternateAndTheMedianCounts(t *testing.T) {
	var order []side
	values := map[side][]float64{statusd: {1, 100, 3}, upstream: {10, 20, 30}, "fixed 8": {7, 8, 9}}
	s := scenario{
		yields: []yield{{"speed", "ns"}},
		sides:  []side{statusd, upstream, "fixed 8"},
		measure: func(_ context.Context, _ *lab, s side) ([]float64, error) {
			order = append(order, s)
			value := values[s][0]
			values[s] = values[s][1:]
			return []float64{value}, nil
		},
	}
	results, err := s.run(t.Context(), nil, 3, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	wantOrder := []side{statusd, upstream, "fixed 8", "fixed 8", upstream, statusd, statusd, upstream, "fixed 8"}
	if !slices.Equal(order, wantOrder) {
		t.Errorf("order: got %v, want %v", order, wantOrder)
	}
	if r := results[0]; r.Statusd != 3 || r.Upstream != 20 || *r.Ceiling != 8 {
		t.Errorf("medians: got %v, %v, %v, want 3, 20, 8", r.Statusd, r.Upstream, *r.Ceiling)
	}
}

func TestChoosingSides(t *testing.T) {
	chosen, err := choose(scenarios(), "burst,patch")
	if err != nil {
		t.Fatal(err)
	}
	some, err := onSides(chosen, "fixed 8,throughput")
	if err != nil || len(some) != 1 || !slices.Equal(some[0].sides, []side{throughput, "fixed 8"}) {
		t.Errorf("got %+v, %v, want the burst with these two sides", some, err)
	}
	if _, err := onSides(chosen, "fixed 9"); err == nil {
		t.Error("an unknown side is taken")
	}
}

func TestChoosingAnUnknownResultNamesTheKnownOnes(t *testing.T) {
	if _, err := choose(scenarios(), "burst,speed"); err == nil || !strings.Contains(err.Error(), `"speed"`) || !strings.Contains(err.Error(), "churn") {
		t.Errorf("got %v, want an error that names the unknown result and those that there are", err)
	}
	chosen, err := choose(scenarios(), "patch_allocs,churn")
	if err != nil || len(chosen) != 2 {
		t.Errorf("got %d scenarios, %v, want the two that have these results", len(chosen), err)
	}
}
