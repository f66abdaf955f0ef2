// Package eviction keeps a node from running out of memory, disk, inodes or process IDs: it
// ends pods before the kernel ends something at random.
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
// What is crossed, what is due, and the order of pods are functions of data (pressure.go,
// rank.go, message.go); time is an argument. The manager asks and does, and it is one
// goroutine: that of the caller of Run. All its methods may be called from any goroutine.
//
// Signals, order, messages and defaults are those of the kubelet. At most one pod is evicted
// at a time. Static, mirror and system-critical pods are never evicted.
package eviction
