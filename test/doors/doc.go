// Package doors tries each kind of credentials on each path of a kubelet's API, and returns the answers.
//
// test/upstream/doors records the answers of a stock kubelet in kubeletapi/testdata/doors.txt; a test of package kubeletapi compares
// statusd's with them.
package doors
