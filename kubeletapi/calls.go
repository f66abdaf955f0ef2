package kubeletapi

import (
	"sync"
	"time"
)

// calls are those under way, until no more may begin.
type calls struct {
	mu   sync.Mutex // guards over
	over bool
	open sync.WaitGroup
}

// begin reports whether a call may begin; it then ends with end.
func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.open.Add(1)
	}
	return !c.over
}

func (c *calls) end() { c.open.Done() }

// finishWithin lets no call begin any more and returns when all have ended, or when the time is over.
func (c *calls) finishWithin(d time.Duration) {
	ended := make(chan struct{})
	go func() { // until the caller calls finish, which waits for the same
		defer close(ended)
		c.finish()
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// finish lets no call begin any more and returns when all have ended.
func (c *calls) finish() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.open.Wait()
}
