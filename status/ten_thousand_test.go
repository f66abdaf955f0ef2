//go:build !race

package status

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/journal"
)

// A node lives for years, its pods for minutes. Nothing may be left of a pod that is gone,
// however it went.
func TestNothingIsLeftOfTenThousandPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newWorld(t, withJournal(memory))
		w.api.OnRemove(w.table.Remove)
		var turns atomic.Int64
		turn := w.manager.engine.turn
		w.manager.engine.turn = func(ctx context.Context, uid types.UID, alone bool) outcome {
			turns.Add(1)
			return turn(ctx, uid, alone)
		}
		w.run()
		ways := []func(*world, *v1.Pod){finished, forced, replaced, contested, observedOnly, failing, mirrored}
		for i := range 10_000 {
			name := fmt.Sprint("pod-", i)
			ways[i%len(ways)](w, w.create(name, restartNever))
			if i%500 == 499 {
				time.Sleep(time.Minute)
				w.manager.RemoveOrphanedStatuses(w.existing())
			}
		}
		time.Sleep(time.Hour)
		w.manager.RemoveOrphanedStatuses(w.existing())
		synctest.Wait()
		if left := w.api.Pods(); len(left) > 0 {
			t.Fatalf("%d pods are left in the API, the first is %s", len(left), left[0].Name)
		}
		for _, kept := range []any{w.manager.cache, &w.manager.engine.inbox, w.manager.resizes, w.table} {
			wantEmptyMaps(t, kept)
		}
		if left := len(memory.Finals()); left > 0 {
			t.Errorf("the journal has the ends of %d pods", left)
		}
		turns.Store(0)
		time.Sleep(24 * time.Hour)
		if got := turns.Load(); got > 0 {
			t.Errorf("%d turns on a day without pods", got)
		}
	})
}

// An embedder without pod workers never says which pods are left. Nothing may be left of those that
// are gone from the API, however they went, and without waiting for a schedule.
func TestEmbedderForgetsTenThousandPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := journal.NewMemory()
		w := newEmbedder(t, withJournal(memory))
		turns := w.countTurns()
		w.run()
		ways := []func(*world, *v1.Pod){finished, collected, forced, forcedAndReportedLate, embedderReplaced, contested, observedOnly, failing, embedderStatic}
		for i := range 10_000 {
			ways[i%len(ways)](w, w.create(fmt.Sprint("pod-", i), restartNever))
		}
		time.Sleep(time.Second)
		if left := w.api.Pods(); len(left) > 0 {
			t.Fatalf("%d pods are left in the API, the first is %s", len(left), left[0].Name)
		}
		w.wantNothingLeft(memory)
		turns.Store(0)
		time.Sleep(24 * time.Hour)
		if got := turns.Load(); got > 0 {
			t.Errorf("%d turns on a day without pods: the queue was not empty", got)
		}
	})
}
