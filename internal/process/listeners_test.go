package process

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
)

// A change between the look of a caller and the moment at which it listens is announced to it.
func TestListen_ChangeBeforeListening_IsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Listeners
		var mu sync.Mutex
		var got []types.UID
		l.Announce("a") // no caller listens yet
		ctx, cancel := context.WithCancel(t.Context())
		go l.Listen(ctx, func(uid types.UID) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, uid)
		}, func() []types.UID { return []types.UID{"a", "b"} })
		synctest.Wait()
		l.Announce("b")
		cancel()
		synctest.Wait()
		l.Announce("a") // the caller listens no more
		mu.Lock()
		defer mu.Unlock()
		if want := []types.UID{"", "a", "b", "b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q: all that is present, then the change", got, want)
		}
	})
}
