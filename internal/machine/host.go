package machine

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

	"github.com/statusd/statusd/internal/machine/load"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/nodecondition"
	"github.com/statusd/statusd/internal/wake"
)

// Options configure the watch of a machine.
type Options struct {
	Node string
	// Conditions maintains conditions of the Node; nil: no conditions.
	Conditions *nodecondition.Owner
	// HostRoot is where the root of the host is mounted, StateDir where positions in logs are kept.
	HostRoot, StateDir string
	// Found receives the problems found in the logs, for the history and for Events. It is called from one
	// goroutine.
	Found func(logs.Problem)
	// Changed is called when the report on the logs has changed.
	Changed    func()
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// loadInterval is how often CPU, memory, disks, PIDs, file descriptors, pressure and network errors are read.
const loadInterval = 10 * time.Second

// Host watches a machine. Make it with [New].
type Host struct {
	config  Config
	o       Options
	monitor *logs.Monitor
	reader  *load.Reader // nil: the load is not read
	load    atomic.Pointer[load.Load]
	past    past
}

// New makes it. New starts nothing.
func New(config Config, o Options) (*Host, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	m := &Host{config: config, o: o}
	options, err := config.logs(o.HostRoot, o.StateDir)
	if err != nil {
		return nil, err
	}
	if missing := config.missing(options); len(missing) > 0 {
		o.Logger.Warn("logs of the machine cannot be read, so problems in them are not found: journalctl is missing, or the device or journal is not readable", "logs", missing)
	}
	options.Problem, options.Changed, options.Registerer, options.Logger = o.Found, m.changed, o.Registerer, o.Logger
	if m.monitor, err = logs.New(options); err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	if len(config.Disks) > 0 {
		if m.reader, err = load.New(load.Options{HostRoot: o.HostRoot, Disks: config.Disks}); err != nil {
			o.Logger.Warn("resource usage of the machine unavailable", "err", err) // the rest works without it
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

// Logs returns the report on the logs.
func (m *Host) Logs() logs.Report { return m.monitor.Report() }

// Load is the last reading. It is empty if the load is not read.
func (m *Host) Load() load.Load {
	if load := m.load.Load(); load != nil {
		return *load
	}
	return load.Load{}
}

// HasLoad reports whether the load is read.
func (m *Host) HasLoad() bool { return m.reader != nil }

// Run watches until ctx ends.
func (m *Host) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { m.monitor.Run(ctx) })
	m.keep()
	m.read(ctx)
	parts.Wait()
	return nil
}

// read reads the load, and checks whether frequent problems are still frequent.
func (m *Host) read(ctx context.Context) {
	wake.Every(ctx, loadInterval, func() {
		if m.reader != nil {
			m.readOnce()
		}
		m.keep()
	})
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
	if m.o.Conditions == nil {
		return
	}
	for _, c := range m.monitor.Report().Conditions {
		status := v1.ConditionFalse
		if c.True {
			status = v1.ConditionTrue
		}
		m.o.Conditions.Set(v1.NodeCondition{Type: v1.NodeConditionType(c.Type), Status: status, Reason: c.Reason, Message: c.Text})
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
