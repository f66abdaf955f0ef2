package podusage

import (
	"sync"
	"time"

	"github.com/statusd/statusd/runtime"
)

// rateTime is the shortest time over which a rate is taken. Times of processes are in steps of
// ten milliseconds.
const rateTime = time.Second

// CPUCount turns CPU times into rates.
type CPUCount struct {
	mu    sync.Mutex // guards what follows
	used  uint64     // the most that was ever measured, in nanoseconds
	from  time.Time  // start of the current rate, and the usage at that time
	then  uint64
	cores *uint64
}

// Next takes a measurement. The usage of a process can get lost with its parent; the sum never
// decreases.
func (c *CPUCount) Next(at time.Time, used uint64) runtime.CPUStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = max(c.used, used)
	switch passed := at.Sub(c.from); {
	case c.from.IsZero():
		c.from, c.then = at, c.used
	case passed >= rateTime:
		c.cores = new(uint64(float64(c.used-c.then) / passed.Seconds()))
		c.from, c.then = at, c.used
	}
	return runtime.CPUStats{Nanoseconds: c.used, NanoCores: c.cores}
}
