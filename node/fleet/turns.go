package fleet

import (
	"context"
	"sync"
	"time"
)

// turns limits the requests in flight to its capacity. Without a limit, a slow server gets so many requests from a thousand nodes that all
// of them time out and are repeated, so that none succeeds.
type turns chan struct{}

// slowTurn is how long a request holds its turn: requests of nodes that hang must not block the requests of other
// nodes.
const slowTurn = 5 * time.Second

// take waits for a turn, until ctx ends. The caller calls done when its request has ended.
func (t turns) take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var once sync.Once
	release := func() { once.Do(func() { <-t }) }
	slow := time.AfterFunc(slowTurn, release)
	return func() { slow.Stop(); release() }, nil
}
