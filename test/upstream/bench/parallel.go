package main

import (
	"context"
	"errors"
	"sync"
)

// parallel calls do for each number below n, from so many goroutines, and returns when all
// calls have ended. After an error no more are made.
func parallel(ctx context.Context, n, workers int, do func(int) error) error {
	numbers := make(chan int)
	failed := make(chan error, workers) // each goroutine fails at most once
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
	for i := 0; i < n && err == nil; i++ {
		select {
		case numbers <- i:
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	close(numbers)
	wg.Wait()
	close(failed)
	for other := range failed {
		err = errors.Join(err, other)
	}
	return err
}
