package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	churnPods     = 250
	churnInterval = time.Second / 20
	// churnStartup is how long a pod runs until it is ready.
	churnStartup = 200 * time.Millisecond
	churnFor     = 15 * time.Second
	// churnPatience is how long the last changes may take to be seen.
	churnPatience = 2 * time.Minute
)

func churnScenarios() []scenario {
	return []scenario{{yields: []yield{{"churn", "ms, p99"}}, sides: managers, measure: measureChurn}}
}

// measureChurn replaces pods at a steady rate and returns the 99th percentile of the times
// from the change of a pod until it is seen.
func measureChurn(ctx context.Context, lab *lab, s side) (_ []float64, err error) {
	c := &churn{ending: make(map[types.UID]bool)}
	st, err := lab.newStage(ctx, s, circumstances{pods: churnPods, delivered: c.delivered})
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(ctx, st, err) }()
	if _, err := st.burst(ctx); err != nil {
		return nil, err
	}
	duration := churnFor
	if lab.quick {
		duration /= 5
	}
	c.begin(st)
	err = c.replacePods(ctx, duration)
	patient, cancel := context.WithTimeout(ctx, churnPatience)
	defer cancel()
	latencies, waitErr := c.wait(patient)
	if err = errors.Join(err, waitErr); err != nil {
		return nil, err
	}
	slices.Sort(latencies)
	return []float64{latencies[len(latencies)*99/100].Seconds() * 1e3}, nil
}

// churn is a node agent that reports pods as they come and go.
type churn struct {
	mu    sync.Mutex // guards what follows
	stage *stage     // nil until it begins
	// left counts the steps of pods that are still to come.
	left    sync.WaitGroup
	ending  map[types.UID]bool
	changes []change
}

// change is something that was reported, and the sight of it in the API.
type change struct {
	at time.Time
	*sighting
}

func (c *churn) begin(st *stage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = st
}

// replacePods creates a pod and deletes the oldest one, again and again.
func (c *churn) replacePods(ctx context.Context, duration time.Duration) error {
	ticker := time.NewTicker(churnInterval)
	defer ticker.Stop()
	rounds := int(duration / churnInterval)
	failed := make(chan error, 2*rounds)
	var requests sync.WaitGroup
	for i := range rounds {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.left.Add(3) // it starts, it turns ready, and another one ends
		requests.Go(func() {
			if _, err := c.stage.create(ctx, churnPods+1+i); err != nil {
				failed <- fmt.Errorf("create pod: %w", err)
				c.left.Add(-2)
			}
		})
		requests.Go(func() {
			oldest := fmt.Sprintf("pod-%06d", i+1)
			err := c.stage.lab.admin.CoreV1().Pods(c.stage.namespace).Delete(ctx, oldest, *metav1.NewDeleteOptions(30))
			if err != nil {
				failed <- fmt.Errorf("delete pod: %w", err)
				c.left.Done()
			}
		})
	}
	requests.Wait()
	c.left.Wait()
	close(failed)
	return <-failed
}

// delivered is called with what the watch of the node has brought.
func (c *churn) delivered(event watch.EventType, pod *v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stage == nil || pod.Namespace != c.stage.namespace:
	case event == watch.Added:
		c.starts(pod)
	case event == watch.Modified && pod.DeletionTimestamp != nil && !c.ending[pod.UID]:
		c.ends(pod)
	}
}

// startsLocked is starts for a pod that no watch event brings.
func (c *churn) startsLocked(pod *v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts(pod)
}

func (c *churn) starts(pod *v1.Pod) {
	c.expect(pod, seenRunning)
	c.stage.manager.setPodStatus(pod, running(pod, false, 0))
	c.left.Done()
	time.AfterFunc(churnStartup, func() {
		defer c.left.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.expect(pod, seenReady)
		c.stage.manager.setReadiness(pod.UID, true)
	})
}

func (c *churn) ends(pod *v1.Pod) {
	c.ending[pod.UID] = true
	c.expect(pod, seenEnded)
	c.expect(pod, seenGone)
	c.stage.manager.setPodStatus(pod, ended(pod))
	c.stage.manager.terminate(pod)
	c.left.Done()
}

func (c *churn) expect(pod *v1.Pod, is func(watch.EventType, *v1.Pod) bool) {
	c.changes = append(c.changes, change{at: time.Now(), sighting: c.stage.witness.expect(pod.UID, is)})
}

// wait returns how long each change took, once all were seen.
func (c *churn) wait(ctx context.Context) ([]time.Duration, error) {
	c.mu.Lock()
	changes := slices.Clone(c.changes)
	c.mu.Unlock()
	latencies := make([]time.Duration, len(changes))
	for i, change := range changes {
		at, err := last(ctx, []*sighting{change.sighting})
		if err != nil {
			return nil, fmt.Errorf("change %d of %d: %w", i+1, len(changes), err)
		}
		latencies[i] = at.Sub(change.at)
	}
	return latencies, nil
}
