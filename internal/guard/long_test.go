//go:build !race

package guard_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// These tests simulate hours or draw many cases, which takes minutes under the race detector; the other tests of the
// package show it the same goroutines.

// A fleet of 50 nodes: a webhook that refuses writes for ten minutes, an API server that is frozen for ten, then a kubelet version that
// does not renew its lease on all nodes, though the API server accepts writes. `make guard-fleet` does the same with a real API server.
func TestFleet_OfFiftyNodes(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		t.Run(fmt.Sprintf("bounded %t", bounded), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const nodes = 50
				all := &slots{holders: map[string]time.Time{}, max: 1}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				var kubelets []*kubelet
				for i := range nodes {
					k := newKubelet()
					kubelets = append(kubelets, k)
					o := guard.Options{Kubelet: k, Collect: k.collect, Policy: guard.DefaultPolicy()}
					o.Policy.Restart = true
					if bounded {
						o.Fleet = slotsOf{all, fmt.Sprint(i)}
					}
					g, err := guard.New(o)
					if err != nil {
						t.Fatal(err)
					}
					running.Go(func() { _ = g.Run(ctx) })
				}
				change := func(change func(k *kubelet)) {
					for _, k := range kubelets {
						k.mu.Lock()
						change(k)
						k.mu.Unlock()
					}
				}
				restarts := func() (total, atOnce int) {
					minutes := map[int64]int{}
					for _, k := range kubelets {
						k.mu.Lock()
						for _, at := range k.restarts {
							total++
							minutes[at.Unix()/60]++
							atOnce = max(atOnce, minutes[at.Unix()/60])
						}
						k.mu.Unlock()
					}
					return total, atOnce
				}
				time.Sleep(time.Minute)
				change(func(k *kubelet) { k.stuck, k.writes = time.Now(), refused })
				time.Sleep(10 * time.Minute)
				// The API server accepts writes again, and each kubelet renews its lease at its next try.
				change(func(k *kubelet) { k.writes = accepted })
				for i, k := range kubelets {
					time.AfterFunc(27*time.Second*time.Duration(i)/nodes, func() {
						k.mu.Lock()
						defer k.mu.Unlock()
						k.stuck, k.writes = time.Time{}, guard.Answer{}
					})
				}
				time.Sleep(5 * time.Minute)
				change(func(k *kubelet) { k.apiDown = true })
				time.Sleep(10 * time.Minute)
				if total, _ := restarts(); total != 0 {
					t.Errorf("%d restarts while the API server refuses writes or is frozen, want none", total)
				}
				change(func(k *kubelet) { k.apiDown = false })
				time.Sleep(10 * time.Minute)
				change(func(k *kubelet) { k.stuck, k.writes = time.Now(), accepted })
				time.Sleep(10 * time.Minute)
				total, atOnce := restarts()
				t.Logf("a bad version on %d nodes: %d restarts within 10 minutes, at most %d within a minute", nodes, total, atOnce)
				if bounded && (atOnce > 1 || total > 5) || !bounded && total != nodes {
					t.Errorf("%d restarts, at most %d within a minute", total, atOnce)
				}
				cancel()
				running.Wait()
			})
		})
	}
}
