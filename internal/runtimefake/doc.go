// Package runtimefake is a runtime for the unit tests of its callers: it starts no process, and its
// containers follow the test's script.
//
//	rt := runtimefake.New()
//	rt.Script(func(pod *v1.Pod, container *v1.Container, attempt int) runtimefake.Behavior {
//		return runtimefake.Behavior{Lives: time.Minute, ExitCode: 3}
//	})
//
// A container with no script runs until it is stopped or [Runtime.Exit] ends it, and ends at once
// when it is stopped. The fake uses package time, so that in a testing/synctest bubble nothing
// waits. Its only goroutines are one for each Watch, which ends with its context.
//
// All methods may be called from any goroutine. Scripts are called without any lock
// held and may call the fake.
package runtimefake
