package machine

import (
	"sync"
	"time"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/machine/load"
)

const (
	// leftKept is how many readings are kept: those of an hour at the default interval.
	leftKept = 360
	// leftNear is how far from a moment a reading may be.
	leftNear = time.Minute
)

// past is what the node had left at its last readings.
type past struct {
	mu   sync.Mutex // guards what follows
	ring []explain.Left
	next int // where the next one goes once the ring is full
}

func (p *past) add(load *load.Load) {
	l := explain.Left{At: load.At, Memory: load.Memory.Available, PIDs: load.PIDs.Max - min(load.PIDs.Used, load.PIDs.Max)}
	if len(load.Disks) > 0 {
		l.Disk, l.Inodes = load.Disks[0].Available, load.Disks[0].InodesFree
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ring) < leftKept {
		p.ring = append(p.ring, l)
		return
	}
	p.ring[p.next] = l
	p.next = (p.next + 1) % leftKept
}

// near are the readings that are nearest to each of some moments.
func (p *past) near(moments []time.Time) (found []explain.Left) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range moments {
		best := -1
		for i := range p.ring {
			if d := p.ring[i].At.Sub(at).Abs(); d <= leftNear && (best < 0 || d < p.ring[best].At.Sub(at).Abs()) {
				best = i
			}
		}
		if best >= 0 {
			found = append(found, p.ring[best])
		}
	}
	return found
}

// Left is the free capacity of the node near some moments, for explanations. It is empty if the load was not
// read then.
func (m *Host) Left(moments []time.Time) []explain.Left {
	if len(moments) == 0 {
		return nil
	}
	return m.past.near(moments)
}
