// Package doors tries the doors of a kubelet's API: each kind of credentials on each path, and what the answer is.
//
// rival/doors records the answers of a stock kubelet in server/testdata/doors.txt; a test of package server compares
// statusd's with them.
package doors
