// Package report turns the results of a benchmark run into what people and programs read:
// a table for the terminal, build/bench.json, and docs/evidence/benchmarks.md with its charts.
//
// Everything in it is a function of a [Run]. Nothing is measured here.
package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Fixed are the numbers in flight that statusd is compared with.
var Fixed = []int{4, 8, 16, 48, 200}

// Run is one complete run.
type Run struct {
	Machine Machine  `json:"machine"`
	Results []Result `json:"results"`
	// Limits is a table, in Markdown, of the limit that the simulation of status finds.
	Limits string `json:"-"`
}

// Result is the outcome of one scenario: the median of its rounds for each side.
type Result struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Statusd  float64  `json:"statusd"`
	Upstream float64  `json:"upstream"`
	Ceiling  *float64 `json:"ceiling,omitempty"` // the best of Plain; nil if the scenario has none
	// Throughput is what statusd reaches with PreferThroughput; nil if that was not measured.
	Throughput *float64 `json:"throughput,omitempty"`
	// Plain is what plain patches without a manager reach, by how many are in flight.
	Plain map[string]float64 `json:"plain,omitempty"`
	// Quartiles are the first and the third of the rounds, by side.
	Quartiles map[string][2]float64 `json:"quartiles,omitempty"`
}

// AddPlain adds what plain patches of a kind reach.
func (r *Result) AddPlain(kind string, value float64) {
	if r.Plain == nil {
		r.Plain = make(map[string]float64)
	}
	r.Plain[kind] = value
	better := r.Ceiling == nil || value < *r.Ceiling
	if r.Ceiling != nil && r.moreIsBetter() {
		better = value > *r.Ceiling
	}
	if better {
		r.Ceiling = &value
	}
}

// Has reports whether there is a result of this name.
func (r *Run) Has(name string) bool {
	_, ok := r.find(name)
	return ok
}

func (r *Run) find(name string) (Result, bool) {
	for _, result := range r.Results {
		if result.Name == name {
			return result, true
		}
	}
	return Result{}, false
}

// moreIsBetter reports whether a result is a throughput, as opposed to a latency or a cost.
func (r Result) moreIsBetter() bool { return strings.HasSuffix(r.Unit, "/s") }

// Advantage is how many times better statusd is: faster, smaller, or fewer.
func (r Result) Advantage() float64 {
	if r.moreIsBetter() {
		return r.Statusd / r.Upstream
	}
	if r.Statusd == r.Upstream {
		return 1 // also if both are zero
	}
	return r.Upstream / r.Statusd
}

// share is the share of the ceiling that statusd reaches; false without a ceiling.
func (r Result) share() (float64, bool) {
	switch {
	case r.Ceiling == nil:
		return 0, false
	case r.moreIsBetter():
		return r.Statusd / *r.Ceiling, true
	default:
		return *r.Ceiling / r.Statusd, true
	}
}

// Quantity writes a value with its unit, to three digits or all that are before the point.
func Quantity(value float64, unit string) string {
	unit, _, _ = strings.Cut(unit, ",") // "ms, p99" is in ms
	return number(value) + " " + unit
}

func number(value float64) string {
	switch magnitude := math.Abs(value); {
	case math.IsInf(value, 0):
		return "∞"
	case value == math.Trunc(value) && magnitude < 1000:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case magnitude < 10:
		return strconv.FormatFloat(value, 'f', 2, 64)
	case magnitude < 100:
		return strconv.FormatFloat(value, 'f', 1, 64)
	default:
		return thousands(strconv.FormatFloat(value, 'f', 0, 64))
	}
}

// thousands sets commas into the digits of a whole number.
func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// spread is a median with its quartiles, if they are known and differ.
func (r Result) spread(side string, median float64) string {
	q, ok := r.Quartiles[side]
	if from, to := number(q[0]), number(q[1]); ok && from != to {
		return number(median) + " (" + from + "–" + to + ")"
	}
	return number(median)
}

func times(ratio float64) string { return number(ratio) + " ×" }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
