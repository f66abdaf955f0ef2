package collect

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/statusd/statusd/internal/guard"
)

// The metrics of a kubelet that are read.
const (
	metricRelist     = "kubelet_pleg_relist_duration_seconds"
	metricLastSeen   = "kubelet_pleg_last_seen_seconds"
	metricEvented    = "kubelet_evented_pleg_connection_success_count"
	metricOperations = "kubelet_runtime_operations_duration_seconds"
	metricTotal      = "kubelet_runtime_operations_total"
	metricErrors     = "kubelet_runtime_operations_errors_total"
	metricStarts     = "kubelet_pod_start_duration_seconds"
	metricClientTTL  = "kubelet_certificate_manager_client_ttl_seconds"
	metricServerTTL  = "kubelet_certificate_manager_server_ttl_seconds"
	metricClientFail = "kubelet_certificate_manager_client_expiration_renew_errors"
	metricServerFail = "kubelet_server_expiration_renew_errors"
	metricRequests   = "rest_client_requests_total"
)

// startsKept is how long the duration of starts counts when no further pod has started.
const startsKept = 5 * time.Minute

// eventedBound is after how long without a relist a kubelet that gets events of the runtime is not ready.
const eventedBound = 10 * time.Minute

// reading is what the metrics say at one time. Counts and sums only grow, until the kubelet starts again.
type reading struct {
	relists, operations, errors float64
	relistTook, operationTook   float64 // seconds in all
	lastSeen                    float64 // seconds since 1970; 0: never
	evented                     bool
	starts, startTook           float64
	clientTTL, serverTTL        float64 // seconds; 0: not said
	renewalErrors               float64
	puts                        map[string]float64 // by status code; a kubelet renews its lease by PUT
}

var prefixes = [][]byte{[]byte("kubelet_pleg_"), []byte("kubelet_runtime_operations_"), []byte("kubelet_evented_pleg_"),
	[]byte("kubelet_pod_start_duration_"), []byte("kubelet_certificate_manager_"), []byte("kubelet_server_expiration_"), []byte(metricRequests)}

// readMetrics parses only the needed lines, a few of a kubelet's thousands.
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
	r.starts, r.startTook = histogram(families[metricStarts])
	r.clientTTL, r.serverTTL = total(families[metricClientTTL]), total(families[metricServerTTL])
	r.puts = puts(families[metricRequests])
	r.renewalErrors = total(families[metricClientFail]) + total(families[metricServerFail])
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

// puts counts the requests with method PUT by status code. Requests without an answer, of code <error>, are not refused
// requests.
func puts(f *dto.MetricFamily) map[string]float64 {
	counts := map[string]float64{}
	for _, m := range f.GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if code := labels["code"]; labels["method"] == "PUT" && len(code) == 3 {
			counts[code] += m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return counts
}

// metrics compares each reading with the one before.
type metrics struct {
	last  reading
	known bool
	// start is how long pods took to start, as seen at startAt.
	start   time.Duration
	startAt time.Time
	// certificates are those of the reading before; renewed is how many renewals had failed when one succeeded.
	certificates guard.Certificates
	renewed      float64
}

// takeStarts is how long the pods took to start that have started since the reading before. It is taken before [metrics.take].
func (m *metrics) takeStarts(r reading, now time.Time) guard.Fact[time.Duration] {
	if m.known && r.starts > m.last.starts {
		m.start, m.startAt = mean(r.startTook-m.last.startTook, r.starts-m.last.starts), now
	}
	if age := now.Sub(m.startAt); m.startAt.IsZero() || age > startsKept || age < 0 {
		return guard.NotKnown[time.Duration](now, "no pod has started lately")
	}
	return guard.Read(m.startAt, m.start)
}

// takeCertificates is when certificates expire and how often their renewal has failed. A certificate that expires later
// than before was renewed. It is taken before [metrics.take].
func (m *metrics) takeCertificates(r reading, now time.Time) guard.Fact[guard.Certificates] {
	c := guard.Certificates{ClientExpires: expiry(r.clientTTL, now), ServerExpires: expiry(r.serverTTL, now)}
	before := m.certificates
	if !m.known || r.renewalErrors < m.renewed || later(before.ClientExpires, c.ClientExpires) || later(before.ServerExpires, c.ServerExpires) {
		m.renewed = r.renewalErrors
	}
	c.RenewalErrors = int(r.renewalErrors - m.renewed)
	m.certificates = c
	return guard.Read(now, c)
}

// takeRequests is what became of the kubelet's writes since the reading before. It is taken before [metrics.take].
func (m *metrics) takeRequests(r reading, now time.Time) guard.Fact[guard.Requests] {
	if !m.known {
		return guard.NotKnown[guard.Requests](now, "one reading of the metrics is not enough")
	}
	var requests guard.Requests
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(r.puts)) {
		n := int(r.puts[code] - m.last.puts[code])
		switch {
		case n <= 0:
		case code[0] == '2':
			requests.Accepted += n
		default:
			requests.Refused += n
			codes = append(codes, code)
		}
	}
	requests.Codes = strings.Join(codes, ", ")
	return guard.Read(now, requests)
}

// expiry is the time when a certificate with ttl seconds left expires. A kubelet without a certificate reports infinity.
func expiry(ttl float64, now time.Time) time.Time {
	const century = 100 * 365 * 24 * 3600
	if ttl == 0 || math.IsNaN(ttl) || math.Abs(ttl) > century {
		return time.Time{}
	}
	return now.Add(time.Duration(ttl * float64(time.Second))).Truncate(time.Second)
}

// later reports whether a certificate expires later than before, beyond the difference of two readings.
func later(before, now time.Time) bool { return !before.IsZero() && now.Sub(before) > time.Minute }

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
