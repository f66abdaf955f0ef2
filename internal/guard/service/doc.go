// Package service restarts a kubelet and its runtime: [Systemd] over D-Bus, [Found] by a command of the operator, or not at all.
//
//	kubelet := service.NewSystemd("kubelet.service", service.SystemdOptions{})
//	state, err := kubelet.State(ctx) // what systemd has recorded, and the state of the process in /proc
//	err = kubelet.Restart(ctx)       // a restart job: also of a unit that has ended with exit code 0
package service
