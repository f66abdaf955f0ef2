package eviction

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What the node runs short of is an event of the Node, and evictions are counted by it.
func TestEvictionsAreCountedAndTheNodeHasAnEvent(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := &machine{memory: 300, pods: []subject{pod("a", 0, 50, 0), pod("b", 0, 400, 0), pod("c", 0, 100, 0), pod("d", 0, 350, 100)}}
	var events []string
	m.run(t, hundred, func(o *Options) {
		o.Registerer = registry
		o.NodeEvent = func(eventType, reason, message string) {
			m.set(func() { events = append(events, eventType+" "+reason+": "+message) })
		}
	}, func(*Manager) {
		wait(time.Minute)
		m.set(func() {
			if want := []string{"Warning EvictionThresholdMet: Attempting to reclaim memory"}; !slices.Equal(events, want) {
				t.Errorf("got events %q of the node, want %q", events, want)
			}
		})
	})
	found, err := registry.Gather()
	if err != nil || len(found) != 1 || found[0].GetName() != "statusd_evictions_total" || len(found[0].GetMetric()) != 1 {
		t.Fatalf("got %v, %v; want one metric", found, err)
	}
	one := found[0].GetMetric()[0]
	if one.GetLabel()[0].GetValue() != "memory.available" || one.GetCounter().GetValue() != 1 {
		t.Errorf("got %v, want one eviction for memory.available", one)
	}
}

// A pod that outlives its grace is an event, and one whose grace is not over is none.
func TestAnEvictedPodThatDoesNotEndIsAnEvent(t *testing.T) {
	m := &machine{memory: 300, stuck: true, pods: []subject{pod("a", 0, 650, 0)}}
	m.run(t, hundred, func(o *Options) { o.Recorder = m }, func(*Manager) {
		wait(cleanupTimeout - time.Second)
		m.set(func() {
			if want := []string{"a Evicted"}; !slices.Equal(m.events, want) {
				t.Errorf("got events %q in time, want %q", m.events, want)
			}
		})
		wait(2 * time.Second)
		m.set(func() {
			if !slices.Contains(m.events, "a ExceededGracePeriod") {
				t.Errorf("got events %q, want one of the grace that was exceeded", m.events)
			}
		})
	})
}
