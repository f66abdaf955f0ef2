// Package metricstest holds the metrics of a process to docs/reference/metrics.md, for tests.
package metricstest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Registry is a registry that also keeps the names of statusd's metrics in it, including vectors
// without a value.
type Registry struct {
	*prometheus.Registry
	// Rows are, by name, the first columns of the table in docs/reference/metrics.md.
	Rows map[string]string
}

// NewRegistry returns an empty one.
func NewRegistry() *Registry {
	return &Registry{Registry: prometheus.NewRegistry(), Rows: map[string]string{}}
}

var description = regexp.MustCompile(`fqName: "(.*?)", help: "(.*?)", (?:unit: ".*?", )?constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)

// Register implements [prometheus.Registerer].
func (r *Registry) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 100)
	c.Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		found := description.FindStringSubmatch(d.String())
		name, help, labels := found[1], found[2], found[4]
		if !strings.HasPrefix(name, "statusd_") {
			continue // of Go and of the process
		}
		for _, constant := range strings.Split(found[3], ",") {
			if label, _, ok := strings.Cut(constant, "="); ok {
				labels += "," + label
			}
		}
		labels = strings.Trim(labels, ",")
		if labels != "" {
			labels = "`" + strings.ReplaceAll(labels, ",", "`, `") + "`"
		}
		r.Rows[name] = fmt.Sprintf("| `%s` | %s | %s | %s |", name, kindOf(c, name), labels, help)
	}
	return r.Registry.Register(c)
}

// MustRegister implements [prometheus.Registerer].
func (r *Registry) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func kindOf(c prometheus.Collector, name string) string {
	switch c.(type) {
	case prometheus.Histogram, *prometheus.HistogramVec:
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// CheckTable fails unless each metric has a row in the document with its type, its labels, its meaning and what
// to do, and each row of the sections that are this process's own is of a metric.
func (r *Registry) CheckTable(t *testing.T, document string, own func(section string) bool) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	missing, section := map[string]bool{}, ""
	for name := range r.Rows {
		missing[name] = true
	}
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(heading)
		}
		name, ok := strings.CutPrefix(line, "| `statusd_")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut("statusd_"+name, "`")
		want, known := r.Rows[name]
		delete(missing, name)
		switch advice := strings.Trim(strings.TrimPrefix(line, want), " |\n"); {
		case !known && own(section):
			t.Errorf("%s has %s, which is not registered", document, name)
		case !known:
		case !strings.HasPrefix(line, want):
			t.Errorf("%s has\n%s, want\n%s WHAT TO DO |", document, line, want)
		case advice == "":
			t.Errorf("%s does not say what to do about %s", document, name)
		}
	}
	for name := range missing {
		t.Errorf("%s lacks the row\n%s WHAT TO DO |", document, r.Rows[name])
	}
}

// labels are the permitted labels of metrics. None has values that users choose, such as names of pods,
// containers and images; rules and outputs come from the operator's config.
var labels = []string{"action", "check", "class", "condition", "container_type", "exit_code", "field", "health", "hook", "kind", "log", "origin", "part", "cause", "output", "phase", "probe", "reason", "result", "rule", "severity", "side", "signal", "stage", "state", "verb", "version"}

// CheckLabels fails if a metric has another label than the allowed ones.
func (r *Registry) CheckLabels(t *testing.T) {
	t.Helper()
	for name, row := range r.Rows {
		for label := range strings.SplitSeq(strings.NewReplacer("`", "", " ", "").Replace(strings.Split(row, "|")[3]), ",") {
			if label != "" && !slices.Contains(labels, label) {
				t.Errorf("%s has the label %s", name, label)
			}
		}
	}
}
