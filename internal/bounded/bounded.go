// Package bounded waits only so long for calls that may hang, as those of a file system do whose disk or server does not answer.
package bounded

import (
	"context"
	"errors"
)

// ErrHangs is the error of a call that did not return in time, and of those refused because it still has not.
var ErrHangs = errors.New("no answer in time")

// Calls are made one at a time, each in a goroutine of its own. At most one call is abandoned, so that a hanging disk costs one
// goroutine and its thread for any number of calls. Calls may be used from any goroutine.
type Calls struct {
	// turn holds the channel of the abandoned call, closed when the call returns; nil: no abandoned call. The goroutine
	// that received it may call.
	turn chan (<-chan struct{})
}

// New makes Calls.
func New() *Calls {
	c := &Calls{make(chan (<-chan struct{}), 1)}
	c.turn <- nil
	return c
}

// Do calls f and returns its error, or ErrHangs if ctx ends first: f then keeps running, and no other code may use its variables.
// Until f returns, Do calls nothing and returns ErrHangs at once.
func (c *Calls) Do(ctx context.Context, f func() error) error {
	left := <-c.turn // the one before waits as long as its own context allows
	defer func() { c.turn <- left }()
	if left != nil && !closed(left) {
		return ErrHangs
	}
	left = nil
	var err error
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		err = f()
	}()
	select {
	case <-returned:
	case <-ctx.Done():
	}
	if !closed(returned) {
		left = returned
		return ErrHangs
	}
	return err
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
