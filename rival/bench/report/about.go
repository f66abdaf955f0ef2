package report

import "strings"

// about says what a result measures. The name of a result without an entry ends in _allocs
// and measures the allocations of the one before.
var about = map[string]string{
	"burst":                 "500 pods turn Running at once, no client limit",
	"burst_2000":            "2,000 pods turn Running at once, no client limit",
	"burst_qps50":           "500 pods turn Running at once, QPS 50, burst 100",
	"rtt50":                 "200 pods turn Running at once, 50 ms round trip to the server",
	"urgent_in_burst":       "a pod loses readiness 100 ms into the burst of 500: until a watch sees it",
	"urgent_in_burst_qps50": "the same with QPS 50, burst 100",
	"churn":                 "20 pods a second start, turn ready, are deleted, 250 on the node: from the change until a watch sees it",
	"requests_per_change":   "requests to the API server for each change in burst",
	"set_unchanged":         "SetPodStatus, nothing changed",
	"set_changed":           "SetPodStatus, something changed",
	"readiness_flip":        "SetContainerReadiness, the other way",
	"get":                   "GetPodStatus",
	"growth_100":            "one change with 100 pods cached",
	"growth_1000":           "one change with 1,000 pods cached",
	"growth_10000":          "one change with 10,000 pods cached",
	"growth_100000":         "one change with 100,000 pods cached",
	"full_pass_1000":        "the periodic pass over 1,000 pods when nothing differs",
	"patch":                 "building one patch: 2 containers, 5 conditions, 2 changes",
	"allocation_10":         "storing one allocation with 10 pods stored",
	"allocation_100":        "storing one allocation with 100 pods stored",
	"allocation_1000":       "storing one allocation with 1,000 pods stored",
	"memory_per_pod":        "heap for each of 10,000 cached pods",
}

func describe(name string) string {
	if call, ok := strings.CutSuffix(name, "_allocs"); ok {
		return "allocations of " + call
	}
	return about[name]
}
