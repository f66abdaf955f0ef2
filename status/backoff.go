package status

import "time"

// backoff is a schedule of waits: the first, doubled with each attempt up to the limit,
// each shortened at random by up to a fifth so that pods that failed together do not
// come back together.
type backoff struct {
	first, limit time.Duration
}

var (
	// retryBackoff spaces the tries of a pod whose request failed.
	retryBackoff = backoff{first: 250 * time.Millisecond, limit: 30 * time.Second}
	// holdBackoff spaces the looks at a pod that waits for something on this node:
	// containers to stop, resources to be reclaimed.
	holdBackoff = backoff{first: time.Second, limit: 10 * time.Second}
	// goneBackoff spaces the looks for a pod that the API server does not have.
	goneBackoff = backoff{first: 30 * time.Second, limit: 10 * time.Minute}
	// fightBackoff spaces the writes to a pod that somebody else keeps changing back.
	fightBackoff = backoff{first: 10 * time.Second, limit: 5 * time.Minute}
)

// wait returns the pause after the given attempt, which counts from 1. The jitter, from 0
// to 1, says how much of the fifth is taken off.
func (b backoff) wait(attempt int, jitter float64) time.Duration {
	d := b.limit
	if doublings := attempt - 1; doublings < 32 && b.first<<doublings < b.limit {
		d = b.first << doublings
	}
	return d - time.Duration(jitter*float64(d/5))
}
