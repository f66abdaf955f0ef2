package wake

import (
	"context"
	"time"
)

// Every calls do after each interval until ctx ends. An interval that ends during a call is not made up for.
func Every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		do()
	}
}
