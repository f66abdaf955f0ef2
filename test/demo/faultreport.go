package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/statusd/statusd/test/campaign"
)

// faultReport collects how the node did.
type faultReport struct {
	options faultOptions
	number  int // of the fault that is on
	kind    string
	order   []string
	kinds   map[string]*kindReport
	wrong   []string
	now     int // how many were wrong before this fault
}

type kindReport struct {
	faults, starts, started int
	seconds                 []float64
	wrong                   int
}

func newFaultReport(options faultOptions) *faultReport {
	r := &faultReport{options: options, kinds: map[string]*kindReport{}}
	r.begin(-1, "at first")
	r.current().faults = 0
	return r
}

func (r *faultReport) current() *kindReport { return r.kinds[r.kind] }

func (r *faultReport) begin(number int, kind string) {
	r.number, r.kind, r.now = number, kind, len(r.wrong)
	if r.kinds[kind] == nil {
		r.kinds[kind] = &kindReport{}
		r.order = append(r.order, kind)
	}
	r.current().faults++
}

// end returns the errors of this fault.
func (r *faultReport) end() string { return strings.Join(r.wrong[r.now:], "\n") }

func (r *faultReport) started(problem error) {
	r.current().starts++
	if problem == nil {
		r.current().started++
		return
	}
	r.isWrong("%v", problem)
}

func (r *faultReport) trueAfter(late time.Duration, when string, differences []string) {
	r.current().seconds = append(r.current().seconds, late.Seconds())
	if late > within {
		r.isWrong("%s: statuses were not true after %s, but after %s: %q", when, within, late.Round(100*time.Millisecond), differences)
	}
}

func (r *faultReport) isWrong(format string, args ...any) {
	r.current().wrong++
	r.wrong = append(r.wrong, fmt.Sprintf("seed %d, fault %d, %s: ", r.options.seed, r.number, r.kind)+fmt.Sprintf(format, args...))
}

// String is a line for each kind of fault.
func (r *faultReport) String() string {
	var b strings.Builder
	total := kindReport{}
	fmt.Fprintf(&b, "%-16s %6s %15s %7s   %s\n", "FAULT", "COUNT", "STATUSD STARTED", "WRONG", "SECONDS UNTIL STATUSES ARE TRUE: p50, p99, max")
	row := func(name string, k *kindReport) {
		fmt.Fprintf(&b, "%-16s %6d %15s %7d   %.2f, %.2f, %.2f (%d times)\n", name, k.faults, fmt.Sprintf("%d of %d", k.started, k.starts), k.wrong,
			campaign.Percentile(k.seconds, 50), campaign.Percentile(k.seconds, 99), campaign.Percentile(k.seconds, 100), len(k.seconds))
	}
	for _, kind := range r.order {
		k := r.kinds[kind]
		total.faults, total.starts, total.started, total.wrong = total.faults+k.faults, total.starts+k.starts, total.started+k.started, total.wrong+k.wrong
		total.seconds = append(total.seconds, k.seconds...)
		if k.faults > 0 {
			row(kind, k)
		}
	}
	row("all", &total)
	for _, wrong := range r.wrong {
		first, _, _ := strings.Cut(wrong, "\n")
		fmt.Fprintln(&b, "WRONG:", first)
	}
	fmt.Fprintf(&b, "seed %d, %d pods", r.options.seed, r.options.pods)
	return b.String()
}
