// Package machineside reads what the operating system has of a node's pods, for package observe: the
// kubelet's directories of pods and what is mounted in them, the control groups of pods, the manifests of
// static pods, and the kubelet's process.
//
//	side, err := machineside.New(machineside.Options{Node: "n1"})
//	go side.Run(ctx)
//	facts := side.Facts()
//
// # In a container
//
// All paths of [Options] are those of the host. With the host's root mounted at [Options.HostRoot] they are read
// below it, and the host's processes below [Options.HostProc]. Symbolic links are resolved below the root, and
// those in directories of pods are not followed: a pod writes there.
//
// # Unknown, never empty
//
// A directory that cannot be read leaves the facts of the last look with the reason in the Answer. What vanishes
// while it is looked at is gone, and no error. A node whose kubelet has never run has no directory of pods, which is
// an answer: none.
//
// # Concurrency
//
// [New] starts nothing. [Side.Run] may be called once; all other methods may be called from any goroutine. What
// [Side.Facts] returns is not changed afterwards.
package machineside
