// Package runtimetest is the conformance suite for implementations of [runtime.Runtime], run on
// real containers.
//
//	func TestConformance(t *testing.T) {
//		runtimetest.Run(t, runtimetest.Config{Image: "busybox", Open: open})
//	}
//
// The first part of the suite is the contract that holds for every runtime: IDs, attempts, errors, lists, stops, containers that
// are created and do not run yet, restarts. A runtime whose containers cannot run shell scripts on this machine runs this part
// alone, with the containers of its Config.Script:
//
//	runtimetest.Run(t, runtimetest.Config{Open: open, Script: func(kind runtimetest.Kind) (v1.Container, bool) {
//		image, ok := map[runtimetest.Kind]string{runtimetest.Succeeds: "jobs/true", runtimetest.Runs: "jobs/sleep"}[kind]
//		return v1.Container{Image: image}, ok
//	}})
//
// In the other parts, containers run scripts with /bin/sh. The scripts talk to the tests through
// two pipes in a hostPath volume, so that no test depends on timing. The scripts find directories
// by the variables of package process or, where the variables are not set, at their mount paths.
//
// A runtime passes without the optional capabilities [runtime.Streamer], [runtime.Statser] and
// following logs: go test -v prints "not implemented" with the name of each missing capability.
package runtimetest
