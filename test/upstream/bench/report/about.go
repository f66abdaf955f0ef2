package report

import "strings"

// about says what a result measures. The name of a result without an entry ends in _allocs
// and measures the allocations of the one before.
var about = map[string]string{
	"burst":              "500 pods turn Running at once, no client limit",
	"burst_2000":         "2,000 pods turn Running at once, no client limit",
	"burst_qps50":        "500 pods turn Running at once, QPS 50, burst 100",
	"burst_request":      "what one request takes in burst, median",
	"burst_2000_request": "what one request takes in burst_2000, median",
	"rtt50_request":      "what one request takes in rtt50, median",
	"rtt200_request":     "what one request takes in rtt200, median",
	"rtt50":              "200 pods turn Running at once, 50 ms round trip to the server",
	"rtt200":             "200 pods turn Running at once (upstream: 50, since it serves one after the other), 200 ms round trip",
	"flapping":           "500 pods flap twice a second for 30 s: the longest until a watch sees one of 100 pods start meanwhile",
	"flapping_p50":       "the same, the median of the 100",
	"writes_per_life":    "300 pods at once: writes from Running to Ready to deleted and gone",
	"requests_per_life":  "the same, reads included",

	"withdrawals_in_burst":                 "100 pods lose readiness, evenly spread over a burst of 2,000: until a watch sees it",
	"withdrawals_in_burst_p99":             "the same, the 99th of 100",
	"withdrawals_in_burst_queue":           "the same, until the request is sent",
	"withdrawals_in_burst_queue_p99":       "the same, until the request is sent, the 99th of 100",
	"withdrawals_in_burst_qps50":           "50 pods lose readiness over a burst of 500, QPS 50, burst 100",
	"withdrawals_in_burst_qps50_p99":       "the same, the slowest of 50",
	"withdrawals_in_burst_qps50_queue":     "the same, until the request is sent",
	"withdrawals_in_burst_qps50_queue_p99": "the same, until the request is sent, the slowest of 50",
	"withdrawals_in_burst_rtt50":           "50 pods lose readiness over a burst of 300, 50 ms round trip",
	"withdrawals_in_burst_rtt50_p99":       "the same, the slowest of 50",
	"withdrawals_in_burst_rtt50_queue":     "the same, until the request is sent",
	"withdrawals_in_burst_rtt50_queue_p99": "the same, until the request is sent, the slowest of 50",
	"urgent_in_burst":                      "a pod loses readiness 100 ms into the burst of 500: until a watch sees it",
	"urgent_in_burst_qps50":                "the same with QPS 50, burst 100",
	"churn":                                "20 pods a second start, turn ready, are deleted, 250 on the node: from the change until a watch sees it",
	"requests_per_change":                  "requests to the API server for each change in burst",
	"set_unchanged":                        "SetPodStatus, nothing changed",
	"set_changed":                          "SetPodStatus, something changed",
	"readiness_flip":                       "SetContainerReadiness, the other way",
	"set_unchanged_history":                "set_unchanged with a history that is written to a file; upstream has none",
	"set_changed_history":                  "set_changed with a history",
	"readiness_flip_history":               "readiness_flip with a history",
	"memory_per_pod_history":               "memory_per_pod with a history",
	"get":                                  "GetPodStatus",
	"growth_100":                           "one change with 100 pods cached",
	"growth_1000":                          "one change with 1,000 pods cached",
	"growth_10000":                         "one change with 10,000 pods cached",
	"growth_100000":                        "one change with 100,000 pods cached",
	"full_pass_1000":                       "the periodic pass over 1,000 pods when nothing differs",
	"patch":                                "building one patch: 2 containers, 5 conditions, 2 changes",
	"allocation_10":                        "storing one allocation with 10 pods stored",
	"allocation_100":                       "storing one allocation with 100 pods stored",
	"allocation_1000":                      "storing one allocation with 1,000 pods stored",
	"memory_per_pod":                       "heap for each of 10,000 cached pods",
}

func describe(name string) string {
	if call, ok := strings.CutSuffix(name, "_allocs"); ok {
		return "allocations of " + call
	}
	return about[name]
}
