package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/guard"
	"github.com/statusd/statusd/guard/monitor"
	"github.com/statusd/statusd/guard/resources"
	"github.com/statusd/statusd/internal/nodecondition"
)

// Options are what a machine is watched with.
type Options struct {
	Node string
	// Client writes conditions of the Node; nil: there are none.
	Client kubernetes.Interface
	// HostRoot is where the root of the host is mounted, StateDir where positions in logs are kept.
	HostRoot, StateDir string
	// Found takes what was found in the logs, for the history and for Events. It is called from one goroutine.
	Found func(monitor.Problem)
	// Changed is called when what the logs amount to has changed.
	Changed    func()
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Host watches a machine. Make it with [New].
type Host struct {
	config  Config
	o       Options
	monitor *monitor.Monitor
	reader  *resources.Reader // nil: the load is not read
	keeper  *nodecondition.Keeper
	load    atomic.Pointer[guard.Load]
	past    past
}

// New makes it. It starts nothing.
func New(config Config, o Options) (*Host, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	m := &Host{config: config, o: o}
	logs, err := config.logs(o.HostRoot, o.StateDir)
	if err != nil {
		return nil, err
	}
	logs.Problem, logs.Changed, logs.Registerer, logs.Logger = o.Found, m.changed, o.Registerer, o.Logger
	if m.monitor, err = monitor.New(logs); err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	if config.NodeConditions && o.Client != nil {
		m.keeper = nodecondition.New(nodecondition.Options{Client: o.Client, Node: o.Node, Logger: o.Logger})
	}
	if config.LoadInterval > 0 {
		if m.reader, err = resources.New(resources.Options{HostRoot: o.HostRoot, Disks: config.Disks}); err != nil {
			o.Logger.Warn("the load of the machine is not read", "err", err) // the rest works without it
			return m, nil
		}
		m.readOnce()
		if o.Registerer != nil {
			if err := o.Registerer.Register(loadMetrics{m}); err != nil {
				return nil, fmt.Errorf("host: %w", err)
			}
		}
	}
	return m, nil
}

// Logs are what the logs amount to.
func (m *Host) Logs() monitor.Report { return m.monitor.Report() }

// Load is the last reading. It is empty if the load is not read.
func (m *Host) Load() guard.Load {
	if load := m.load.Load(); load != nil {
		return *load
	}
	return guard.Load{}
}

// HasLoad reports whether the load is read.
func (m *Host) HasLoad() bool { return m.reader != nil }

// Run watches until ctx ends.
func (m *Host) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { m.monitor.Run(ctx) })
	if m.keeper != nil {
		m.keep()
		parts.Go(func() { m.keeper.Run(ctx) })
	}
	m.read(ctx)
	parts.Wait()
	return nil
}

// read reads the load, and looks whether what was frequent still is.
func (m *Host) read(ctx context.Context) {
	ticker := time.NewTicker(cmp.Or(m.config.LoadInterval, time.Minute))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if m.reader != nil {
			m.readOnce()
		}
		m.keep()
	}
}

func (m *Host) readOnce() {
	load := m.reader.Read()
	m.load.Store(&load)
	m.past.add(&load)
}

func (m *Host) changed() {
	m.keep()
	if m.o.Changed != nil {
		m.o.Changed()
	}
}

// keep has the conditions of the Node follow the logs.
func (m *Host) keep() {
	if m.keeper == nil {
		return
	}
	for _, c := range m.monitor.Report().Conditions {
		status := v1.ConditionFalse
		if c.True {
			status = v1.ConditionTrue
		}
		m.keeper.Set(v1.NodeCondition{Type: v1.NodeConditionType(c.Type), Status: status, Reason: c.Reason, Message: c.Text})
	}
}

// loadMetrics are the metrics of the load.
type loadMetrics struct{ *Host }

var (
	loadDesc = prometheus.NewDesc("statusd_node_load", "How near the node is to running out of something: 0 is idle, 1 is out.", nil, nil)
	partDesc = prometheus.NewDesc("statusd_node_load_part", "How much of a resource the node uses, of 1, by resource.", []string{"part"}, nil)
)

// Describe implements [prometheus.Collector].
func (loadMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- loadDesc; ch <- partDesc }

// Collect implements [prometheus.Collector].
func (l loadMetrics) Collect(ch chan<- prometheus.Metric) {
	load := l.Load()
	ch <- prometheus.MustNewConstMetric(loadDesc, prometheus.GaugeValue, load.Load)
	for _, part := range load.Parts {
		ch <- prometheus.MustNewConstMetric(partDesc, prometheus.GaugeValue, part.Used, part.Name)
	}
}
