package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/statusd/statusd/rival/bench/report"
)

// side is one of those that are measured.
type side string

const (
	statusd  side = "statusd"
	upstream side = "upstream"
	ceiling  side = "ceiling"
)

// managers are the two sides of a scenario that has no ceiling.
var managers = []side{statusd, upstream}

// scenario is something that is measured once a round for each of its sides.
type scenario struct {
	// yields are the results, in the order in which measure returns their values.
	yields  []yield
	sides   []side
	measure func(ctx context.Context, lab *lab, s side) ([]float64, error)
}

// yield is a result that a scenario has.
type yield struct {
	name, unit string
}

func scenarios() []scenario {
	return slices.Concat(
		callScenarios(),
		patchScenarios(),
		growthScenarios(),
		fullPassScenarios(),
		allocationScenarios(),
		memoryScenarios(),
		burstScenarios(),
		urgentScenarios(),
		churnScenarios(),
	)
}

// run measures a scenario in so many rounds, says on w how it goes, and returns the medians.
func (s scenario) run(ctx context.Context, lab *lab, rounds int, w io.Writer) ([]report.Result, error) {
	samples := make(map[side][][]float64) // by side, by yield
	for _, side := range s.sides {
		samples[side] = make([][]float64, len(s.yields))
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
		result := report.Result{Name: y.name, Unit: y.unit,
			Statusd: median(samples[statusd][i]), Upstream: median(samples[upstream][i])}
		if of, ok := samples[ceiling]; ok {
			result.Ceiling = new(median(of[i]))
		}
		results = append(results, result)
	}
	return results, nil
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
