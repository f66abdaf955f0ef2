// Package runtimetest is the conformance suite of runtimes: what a [runtime.Runtime]
// must do, tried on real containers.
//
//	func TestConformance(t *testing.T) {
//		runtimetest.Run(t, runtimetest.Config{Image: "busybox", Open: open})
//	}
//
// Containers are scripts for /bin/sh. They talk with the tests through two pipes in a
// hostPath volume, so that no test has to guess how long something takes. Directories
// are taken from the variables of package process or, where those are not set, from
// where they are mounted.
//
// A runtime passes without the capabilities that it need not have, [runtime.Streamer],
// [runtime.Statser] and logs that are followed: go test -v shows "not implemented" with the name
// of each that it lacks.
package runtimetest
