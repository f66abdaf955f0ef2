package report

import "fmt"

// bar is what a result has to reach.
type bar struct {
	name string
	says string
	met  func(r Result, run *Run) bool
}

// bars are what the results have to reach.
var bars = []bar{
	atLeast("burst", 3),
	onFrontier("burst"), onFrontier("burst_2000"), onFrontier("rtt50"), onFrontier("rtt200"),
	throughput("burst"), throughput("burst_2000"), throughput("rtt50"), throughput("rtt200"),
	{"burst_request", "≤ ½ of fixed 48", func(r Result, _ *Run) bool {
		fixed, ok := r.Plain["fixed 48"]
		return ok && r.Statusd <= fixed/2
	}},
	atLeast("burst_qps50", 1.9),
	atLeast("rtt50", 45),
	atLeast("rtt200", 100),
	atLeast("withdrawals_in_burst", 30),
	{"withdrawals_in_burst_p99", "≤ 1.5 × a lone client", func(r Result, _ *Run) bool {
		return r.Ceiling != nil && r.Statusd <= 1.5**r.Ceiling
	}},
	{"withdrawals_in_burst_queue_p99", "≤ 10 ms", func(r Result, _ *Run) bool { return r.Statusd <= 10 }},
	{"writes_per_life", "no more", noMore},
	{"urgent_in_burst", "≤ 1/20 of upstream", func(r Result, _ *Run) bool { return r.Statusd <= r.Upstream/20 }},
	{"requests_per_change", "≤ 1.01", func(r Result, _ *Run) bool { return r.Statusd <= 1.01 }},
	atLeast("set_unchanged", 15),
	{"set_unchanged_allocs", "0", func(r Result, _ *Run) bool { return r.Statusd == 0 }},
	atLeast("set_changed", 2),
	atLeast("readiness_flip", 3),
	atLeast("set_unchanged_history", 15),
	{"set_unchanged_history_allocs", "0", func(r Result, _ *Run) bool { return r.Statusd == 0 }},
	atLeast("set_changed_history", 2),
	atLeast("readiness_flip_history", 3),
	{"growth_100000", "≤ 1.5 × growth_100", func(r Result, run *Run) bool {
		small, ok := run.find("growth_100")
		return ok && r.Statusd <= 1.5*small.Statusd
	}},
	atLeast("patch", 5),
	{"allocation_10", "no slower", noMore},
	atLeast("allocation_1000", 5),
	{"memory_per_pod", "no more", noMore},
}

// onFrontier: with no fixed number in flight are there both more throughput and less latency per request.
func onFrontier(name string) bar {
	return bar{name, "no fixed number better in both", func(r Result, run *Run) bool {
		request, ok := run.find(name + "_request")
		for kind, rate := range r.Plain {
			ok = ok && (rate <= r.Statusd || request.Plain[kind] >= request.Statusd)
		}
		return ok
	}}
}

// throughput: with PreferThroughput statusd is about as fast as the best fixed number.
func throughput(name string) bar {
	return bar{name, "PreferThroughput ≥ 0.95 × ceiling", func(r Result, _ *Run) bool {
		return r.Throughput != nil && r.Ceiling != nil && *r.Throughput >= 0.95**r.Ceiling
	}}
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
