// Package probe finds out whether the containers of a node have started, are ready and
// are alive, as their startup, readiness and liveness probes define it.
//
// Everything is about one run of a container, which is what a container ID names:
//
//	UpdatePodStatus ──► a run is seen ──► startup ──► readiness ──► Status, Sync
//	 (pod worker)       by its ID         passes  └─► liveness ───► Unhealthy
//	      ▲                                                │
//	      └────────── Started and Ready of that run ◄──────┘
//
// A run ends when its container stops or is replaced; with it end its probes, and a result
// that comes too late is dropped. A new run inherits nothing from the one before it
// (#141473). A run that this process did not start itself begins with what was last
// reported under the same ID, so that a restart of the agent makes nobody unready
// (#100277). A container is never ready that has not started (#136047).
//
// # Files
//
// What a series of results means is decided by pure functions in threshold.go and
// results.go; how one question is put to a container is in check.go and the files named
// after the handlers; prober.go and run.go know which runs there are, task.go probes one
// of them.
//
// # Concurrency
//
// [New] starts nothing. [Prober.Run] blocks, and owns one goroutine for each probe of each
// run, so a probe that hangs delays no other. The other methods may be called from any
// goroutine, before, during and after Run, and never wait for a probe. What [Options] name
// is called without any lock held, for one container in the order in which things were
// found. No pod passed in is changed, nor may the caller change it afterwards.
package probe
