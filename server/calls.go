package server

import "sync"

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

// finish lets no call begin any more and returns when all have ended.
func (c *calls) finish() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.open.Wait()
}
