package status

import "time"

// stall is why nothing of the node is sent. It is guarded by the lock of the cache.
type stall struct {
	reason   string // empty: not stalled
	err      error
	attempts int
	nextTry  time.Time
}

const (
	stallNotRunning = "the manager is not running"
	stallUnlisted   = "the pods of the node are not listed yet, and nothing is sent before"
)

func (c *cache) setStall(s stall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stall = s
}

// explain adds to what is pending why it is not sent.
func (s stall) explain(p *Pending) {
	if s.reason == "" || p.Version == p.Accepted {
		return
	}
	p.Reason = s.reason
	if s.err != nil {
		p.Err, p.Attempts, p.NextTry = s.err, s.attempts, s.nextTry
	}
}
