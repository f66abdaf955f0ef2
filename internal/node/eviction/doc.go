// Package eviction keeps a node from running out of memory, disk, inodes or process IDs: it evicts
// pods before the kernel kills arbitrary processes.
//
// # Use
//
//	thresholds, err := eviction.Config{Hard: eviction.DefaultHard()}.Thresholds()
//	manager, err := eviction.New(eviction.Options{Thresholds: thresholds, Read: …, Pods: …, Evict: …})
//	go manager.Run(ctx)
//	manager.Admit(pod)       // whether a pod may start under the present pressure
//	manager.Conditions()     // what the Node shows
//
// # The loop
//
//	read ──► thresholds crossed ──► grace of soft ones over ──► reclaim what is dead
//	  ▲             │                                                   │ not enough
//	  │             ▼                                                   ▼
//	  │       conditions of the node,                  rank the pods, evict the first,
//	  └────── kept for a while ◄────────────────────── wait until it has ended
//
// Crossed thresholds, due evictions and the order of pods are pure functions (pressure.go, rank.go,
// message.go); time is an argument. The manager reads the signals and evicts in one goroutine: the
// caller's goroutine of Run. All its methods may be called from any goroutine.
//
// Signals, order, messages and defaults are those of the kubelet. At most one pod is evicted
// at a time. Static, mirror and system-critical pods are never evicted.
package eviction
