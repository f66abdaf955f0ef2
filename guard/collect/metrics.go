package collect

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/statusd/statusd/guard"
)

// The metrics of a kubelet that are read.
const (
	metricRelist     = "kubelet_pleg_relist_duration_seconds"
	metricLastSeen   = "kubelet_pleg_last_seen_seconds"
	metricEvented    = "kubelet_evented_pleg_connection_success_count"
	metricOperations = "kubelet_runtime_operations_duration_seconds"
	metricTotal      = "kubelet_runtime_operations_total"
	metricErrors     = "kubelet_runtime_operations_errors_total"
)

// eventedBound is after how long without a relist a kubelet that gets events of the runtime is not ready.
const eventedBound = 10 * time.Minute

// reading is what the metrics say at one time. Counts and sums only grow, until the kubelet starts again.
type reading struct {
	relists, operations, errors float64
	relistTook, operationTook   float64 // seconds in all
	lastSeen                    float64 // seconds since 1970; 0: never
	evented                     bool
}

var prefixes = [][]byte{[]byte("kubelet_pleg_"), []byte("kubelet_runtime_operations_"), []byte("kubelet_evented_pleg_")}

// readMetrics reads what is of interest: the other lines, of which a kubelet has thousands, are not parsed.
func readMetrics(from io.Reader) (reading, error) {
	var wanted bytes.Buffer
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		line := lines.Bytes()
		name, isType := bytes.CutPrefix(line, []byte("# TYPE "))
		if !isType && bytes.HasPrefix(line, []byte("#")) {
			continue
		}
		for _, prefix := range prefixes {
			if bytes.HasPrefix(name, prefix) {
				wanted.Write(line)
				wanted.WriteByte('\n')
			}
		}
	}
	if err := lines.Err(); err != nil {
		return reading{}, fmt.Errorf("collect: read metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&wanted)
	if err != nil {
		return reading{}, fmt.Errorf("collect: read metrics: %w", err)
	}
	var r reading
	r.relists, r.relistTook = histogram(families[metricRelist])
	_, r.operationTook = histogram(families[metricOperations])
	r.operations, r.errors = total(families[metricTotal]), total(families[metricErrors])
	r.lastSeen = total(families[metricLastSeen])
	r.evented = total(families[metricEvented]) > 0
	return r, nil
}

func histogram(f *dto.MetricFamily) (count, sum float64) {
	for _, m := range f.GetMetric() {
		count += float64(m.GetHistogram().GetSampleCount())
		sum += m.GetHistogram().GetSampleSum()
	}
	return count, sum
}

func total(f *dto.MetricFamily) (sum float64) {
	for _, m := range f.GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}

// metrics compares each reading with the one before.
type metrics struct {
	last  reading
	known bool
}

func (m *metrics) take(r reading, now time.Time) (guard.Fact[guard.PLEG], guard.Fact[guard.Operations]) {
	before, known := m.last, m.known && r.relists >= m.last.relists && r.operations >= m.last.operations
	m.last, m.known = r, true
	pleg := guard.PLEG{}
	if r.evented {
		pleg.Bound = eventedBound
	}
	if r.lastSeen > 0 {
		pleg.LastSeen = time.UnixMilli(int64(r.lastSeen * 1000))
	}
	if !known {
		return guard.Read(now, pleg), guard.NotKnown[guard.Operations](now, "one reading of the metrics is not enough")
	}
	pleg.Relist = mean(r.relistTook-before.relistTook, r.relists-before.relists)
	return guard.Read(now, pleg), guard.Read(now, guard.Operations{
		Count: int(r.operations - before.operations), Errors: int(r.errors - before.errors),
		Mean: mean(r.operationTook-before.operationTook, r.operations-before.operations),
	})
}

func mean(seconds, count float64) time.Duration {
	if count <= 0 {
		return 0
	}
	return time.Duration(seconds / count * float64(time.Second))
}
