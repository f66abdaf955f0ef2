// Package probe determines whether the containers of a node have started, are ready and are alive,
// by their startup, readiness and liveness probes.
//
// All state belongs to one run of a container, which a container ID names:
//
//	UpdatePodStatus ──► a run is seen ──► startup ──► readiness ──► Status, Sync
//	 (pod worker)       by its ID         passes  └─► liveness ───► Unhealthy
//	      ▲                                                │
//	      └────────── Started and Ready of that run ◄──────┘
//
// A run ends when its container stops or is replaced; its probes end with it, and late results are
// dropped. A new run inherits nothing from the previous one (#141473). A run that this process did
// not start itself begins with the values last reported under the same ID, so that a restart of the
// agent makes no container unready (#100277). A container that has not started is never ready
// (#136047).
//
// # Files
//
// Pure functions in threshold.go and results.go decide what a series of results means;
// check.go and the files named after the handlers carry out one probe; prober.go and run.go
// keep the runs, task.go probes one of them.
//
// # Concurrency
//
// [New] starts nothing. [Prober.Run] blocks, and owns one goroutine for each probe of each
// run, so a probe that hangs delays no other. The other methods may be called from any
// goroutine, before, during and after Run, and never wait for a probe. The functions and
// interfaces of [Options] are called without any lock held, for one container in the order of
// its results. Pods that are passed in are not modified, and the caller must not modify them
// afterwards.
package probe
