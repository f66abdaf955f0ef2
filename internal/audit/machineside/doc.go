// Package machineside reads the operating system's facts of a node's pods, for package audit: the
// kubelet's directories of pods and the mounts in them, the control groups of pods, the manifests of
// static pods, and the kubelet's process.
//
//	side, err := machineside.New(machineside.Options{Node: "n1"})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # In a container
//
// All paths of [Options] are paths of the host. With the host's root mounted at [Options.HostRoot] they are read
// below it, and the host's processes below [Options.HostProc]. Symbolic links are resolved below the root. Links
// in directories of pods are not followed: a pod writes there.
//
// # Unknown, never empty
//
// A directory that cannot be read leaves the facts of the last reading with the reason in the Answer. A file that
// vanishes during a reading is absent, and no error. A node whose kubelet has never run has no directory of pods;
// the answer is then empty and known.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. The
// facts that [Side.Facts] returns are not changed afterwards.
package machineside
