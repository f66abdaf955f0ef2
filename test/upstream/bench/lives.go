package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const livesPods = 300

func lifeScenarios() []scenario {
	return []scenario{{
		yields:  []yield{{"writes_per_life", "writes"}, {"requests_per_life", "requests"}},
		sides:   managers,
		rounds:  3,
		measure: measureLives,
	}}
}

// measureLives has many pods at once go through their lives: they run, become ready a little
// later, are deleted, and end. measureLives returns how many writes and requests a life took. Under
// such a load changes of a pod can go out together.
func measureLives(ctx context.Context, lab *lab, s side) (_ []float64, err error) {
	c := &churn{ending: make(map[types.UID]bool)}
	st, err := lab.newStage(ctx, s, lab.scaled(circumstances{pods: livesPods, delivered: c.delivered}))
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(ctx, st, err) }()
	c.begin(st)
	c.left.Add(3 * len(st.pods)) // each starts, turns ready, and ends
	for _, pod := range st.pods {
		c.startsLocked(pod)
	}
	patient, cancel := context.WithTimeout(ctx, churnPatience)
	defer cancel()
	time.Sleep(churnStartup)
	if _, err := c.wait(patient); err != nil {
		return nil, err
	}
	err = parallel(ctx, len(st.pods), 8, func(i int) error {
		return lab.admin.CoreV1().Pods(st.namespace).Delete(ctx, st.pods[i].Name, *metav1.NewDeleteOptions(30))
	})
	if err != nil {
		return nil, err
	}
	c.left.Wait()
	if _, err := c.wait(patient); err != nil {
		return nil, err
	}
	requests, writes := st.counter.perPod(len(st.pods))
	return []float64{writes, requests}, nil
}
