// Package doors tries the doors of a kubelet's API: each kind of credentials on each path, and what the answer is.
//
// test/upstream/doors records the answers of a stock kubelet in kubeletapi/testdata/doors.txt; a test of package server compares
// statusd's with them.
package doors
