package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/statusd/statusd/test/upstream/bench/report"
)

// side is a measured side.
type side string

const (
	statusd  side = "statusd"
	upstream side = "upstream"
	// statusd with Options.PreferThroughput.
	throughput side = "throughput"
	// A client that has nothing to do but to send the withdrawals, beside plain patches.
	lone side = "lone client"
)

var (
	// managers are the two sides of a scenario that has no ceiling.
	managers = []side{statusd, upstream}
	// withFixed are all sides of a scenario that has a ceiling: plain patches without a manager, with a fixed number in
	// flight. The best is the ceiling.
	withFixed = append([]side{statusd, throughput, upstream}, fixedSides()...)
)

func fixedSides() (sides []side) {
	for _, n := range report.Fixed {
		sides = append(sides, side(fmt.Sprint("fixed ", n)))
	}
	return sides
}

// inFlight is how many plain patches a side has in flight, 48 if it does not say.
func (s side) inFlight() int {
	n := 48
	fmt.Sscanf(string(s), "fixed %d", &n)
	return n
}

// scenario is something that is measured once a round for each of its sides.
type scenario struct {
	// yields are the results, in the order in which measure returns their values.
	yields  []yield
	sides   []side
	measure func(ctx context.Context, lab *lab, s side) ([]float64, error)
	// rounds is how many rounds are enough, zero if as many as there are: a run with many
	// samples of its own, or one that takes minutes, needs fewer.
	rounds int
}

// yield is a result that a scenario has.
type yield struct {
	name, unit string
}

func scenarios() []scenario {
	return slices.Concat(
		callScenarios(),
		withHistory(callScenarios(), "set_unchanged", "set_changed", "readiness_flip"),
		patchScenarios(),
		atMost(3, growthScenarios()),
		fullPassScenarios(),
		atMost(3, allocationScenarios()),
		atMost(3, memoryScenarios()),
		atMost(3, withHistory(memoryScenarios(), "memory_per_pod")),
		burstScenarios(),
		atMost(3, urgentScenarios()),
		withdrawalScenarios(),
		flappingScenarios(),
		atMost(3, churnScenarios()),
		lifeScenarios(),
	)
}

// atMost says how many rounds are enough.
func atMost(rounds int, all []scenario) []scenario {
	for i := range all {
		all[i].rounds = rounds
	}
	return all
}

// run measures a scenario in so many rounds, says on w how it goes, and returns the medians.
func (s scenario) run(ctx context.Context, lab *lab, rounds int, w io.Writer) ([]report.Result, error) {
	samples := make(map[side][][]float64) // by side, by yield
	for _, side := range s.sides {
		samples[side] = make([][]float64, len(s.yields))
	}
	if s.rounds > 0 {
		rounds = min(rounds, s.rounds)
	}
	for round := range rounds {
		order := slices.Clone(s.sides)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			begin := time.Now()
			values, err := s.measure(ctx, lab, side)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", s.yields[0].name, side, err)
			}
			fmt.Fprintf(w, "  round %d/%d  %-8s ", round+1, rounds, side)
			for i, y := range s.yields {
				fmt.Fprintf(w, "  %s %s", y.name, report.Quantity(values[i], y.unit))
				samples[side][i] = append(samples[side][i], values[i])
			}
			fmt.Fprintf(w, "  (took %s)\n", time.Since(begin).Round(100*time.Millisecond))
		}
	}
	var results []report.Result
	for i, y := range s.yields {
		result := report.Result{Name: y.name, Unit: y.unit, Quartiles: make(map[string][2]float64)}
		for _, side := range s.sides {
			if math.IsNaN(samples[side][i][0]) { // the side has no such result
				continue
			}
			result.Quartiles[string(side)] = [2]float64{quantile(samples[side][i], 0.25), quantile(samples[side][i], 0.75)}
			switch value := quantile(samples[side][i], 0.5); side {
			case statusd:
				result.Statusd = value
			case upstream:
				result.Upstream = value
			case throughput:
				result.Throughput = &value
			default:
				result.AddPlain(string(side), value)
			}
		}
		results = append(results, result)
	}
	return results, nil
}

// quantile of the samples, between two of them if need be; the median is that of 0.5.
func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}
