// Package background runs something for as long as a test.
package background

import (
	"context"
	"testing"
)

// Run runs a function, such as Run of an agent, until the test ends, and waits for its end. An error of the function fails the test.
func Run(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
