// Package service starts, stops and restarts a kubelet and its runtime: [Systemd] over D-Bus, [Child] as a
// process of its own that a command starts, [Found] only looks. [Order] starts several in order, waiting
// for each to be ready, and stops them in the reverse order.
//
//	kubelet := service.NewSystemd("kubelet.service", service.SystemdOptions{})
//	state, err := kubelet.State(ctx) // what systemd has recorded, and the state of the process in /proc
//	err = kubelet.Restart(ctx)       // a restart job: also of a unit that has ended with exit code 0
package service
