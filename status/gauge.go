package status

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// sharedGauge is a gauge over all managers that share a registry and run: each has a part in
// it, and the whole is the sum of them, or the largest.
type sharedGauge struct {
	description *prometheus.Desc
	read        func() float64 // the part of the manager that made it
	largest     bool
	// mu guards parts.
	mu    sync.Mutex
	parts map[*gaugePart]bool
}

// gaugePart is what one manager adds to a gauge.
type gaugePart struct {
	gauge *sharedGauge
	read  func() float64
}

func newSharedGauge(name, help string, labels prometheus.Labels, read func() float64) *sharedGauge {
	return &sharedGauge{
		description: prometheus.NewDesc("statusd_"+name, help, nil, labels),
		read:        read,
		parts:       make(map[*gaugePart]bool),
	}
}

func (g *sharedGauge) add(p *gaugePart) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parts[p] = true
}

func (g *sharedGauge) remove(p *gaugePart) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.parts, p)
}

// Describe implements [prometheus.Collector].
func (g *sharedGauge) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- g.description }

// Collect implements [prometheus.Collector].
func (g *sharedGauge) Collect(values chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	whole := 0.0
	for p := range g.parts {
		if g.largest {
			whole = max(whole, p.read())
		} else {
			whole += p.read()
		}
	}
	values <- prometheus.MustNewConstMetric(g.description, prometheus.GaugeValue, whole)
}

// pendingGauges count the pods and changes that the API server has not accepted.
func pendingGauges(c *cache) []*sharedGauge {
	oldest := newSharedGauge("oldest_pending_seconds", "Age of the oldest change that the API server has not accepted.", nil,
		func() float64 { return c.oldestUnsent(time.Now()).Seconds() })
	oldest.largest = true
	return []*sharedGauge{
		newSharedGauge("pod_status_pending", "Pods with a change that the API server has not accepted.", nil,
			func() float64 { return float64(c.countUnsent()) }),
		oldest,
	}
}
