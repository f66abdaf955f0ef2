// Package announced is how tests announce the shutdown of a machine.
package announced

import "context"

// Shutdowns passes announcements on until ctx ends or in is closed, as a host does that is followed.
func Shutdowns(ctx context.Context, in <-chan bool) <-chan bool {
	out := make(chan bool)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case begins, open := <-in:
				if !open {
					return
				}
				out <- begins
			}
		}
	}()
	return out
}
