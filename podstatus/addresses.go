package podstatus

import v1 "k8s.io/api/core/v1"

// A pod status names the pod's and the host's addresses twice: the main one alone, and all of
// them with the main one first. The API server makes the pod's pair agree when it stores a
// status, and refuses a host's pair that does not. A status that says less than both is
// completed in the same way before it is stored here (N6): otherwise the API's copy would
// differ from it forever.

// pairAddresses makes the main address and the list agree: one that is missing follows from
// the other, and if they contradict each other, the main address counts.
func pairAddresses[T v1.PodIP | v1.HostIP](main *string, all *[]T) {
	switch {
	case *main == "" && len(*all) > 0:
		*main = v1.PodIP((*all)[0]).IP
	case *main != "" && !leads(*main, *all):
		*all = []T{T(v1.PodIP{IP: *main})}
	}
}

// leads reports whether the list begins with the address.
func leads[T v1.PodIP | v1.HostIP](main string, all []T) bool {
	return len(all) > 0 && v1.PodIP(all[0]).IP == main
}

// sameAddresses compares a pair that agrees with one as a reporter built it, as if
// pairAddresses had been applied to that.
func sameAddresses[T v1.PodIP | v1.HostIP](main string, all []T, rawMain string, rawAll []T) bool {
	if rawMain == "" && len(rawAll) > 0 {
		rawMain = v1.PodIP(rawAll[0]).IP
	}
	if main != rawMain {
		return false
	}
	if rawMain != "" && !leads(rawMain, rawAll) {
		return len(all) == 1 && leads(rawMain, all)
	}
	if len(all) != len(rawAll) {
		return false
	}
	for i := range all {
		if v1.PodIP(all[i]).IP != v1.PodIP(rawAll[i]).IP {
			return false
		}
	}
	return true
}
