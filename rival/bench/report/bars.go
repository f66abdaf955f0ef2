package report

import "fmt"

// bar is what a result has to reach.
type bar struct {
	name string
	says string
	met  func(r Result, run *Run) bool
}

// bars are those of the issue that asked for the benchmarks, in its order.
var bars = []bar{
	atLeast("burst", 3),
	{"burst", "≥ 0.9 × ceiling", func(r Result, _ *Run) bool {
		share, ok := r.share()
		return ok && share >= 0.9
	}},
	atLeast("burst_qps50", 1.9),
	atLeast("rtt50", 35),
	{"urgent_in_burst", "≤ 1/20 of upstream", func(r Result, _ *Run) bool { return r.Statusd <= r.Upstream/20 }},
	{"requests_per_change", "≤ 1.01", func(r Result, _ *Run) bool { return r.Statusd <= 1.01 }},
	atLeast("set_unchanged", 15),
	{"set_unchanged_allocs", "0", func(r Result, _ *Run) bool { return r.Statusd == 0 }},
	atLeast("set_changed", 2),
	atLeast("readiness_flip", 3),
	{"growth_100000", "≤ 1.5 × growth_100", func(r Result, run *Run) bool {
		small, ok := run.find("growth_100")
		return ok && r.Statusd <= 1.5*small.Statusd
	}},
	atLeast("patch", 5),
	{"allocation_10", "no slower", noMore},
	atLeast("allocation_1000", 5),
	{"memory_per_pod", "no more", noMore},
}

func atLeast(name string, advantage float64) bar {
	return bar{name, fmt.Sprintf("≥ %v ×", advantage), func(r Result, _ *Run) bool { return r.Advantage() >= advantage }}
}

func noMore(r Result, _ *Run) bool { return r.Statusd <= r.Upstream }

// verdicts are the bars of a result, each with whether it is met.
func (r *Run) verdicts(result Result) []string {
	var list []string
	for _, b := range bars {
		if b.name != result.Name {
			continue
		}
		verdict := "missed"
		if b.met(result, r) {
			verdict = "met"
		}
		list = append(list, b.says+": "+verdict)
	}
	return list
}
