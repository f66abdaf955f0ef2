// Package machine is a machine for a node agent, and the agent on it: the stock kubelet with
// containerd and runc, or statusd.
//
// The machine is a namespace of processes and of mounts on this one. It has a small disk and a
// boot ID of its own, a logind that announces shutdowns, and an API server that belongs to it but
// survives its reboots:
//
//	Enter ─► init, the first process: collects orphans; all processes end with it
//	          └─► the caller's program again: New ─► API server, logind, agent ─► pods
//
// Reboot kills every process but those of the caller and the API server, at one instant, as a
// loss of power does; what lay in /run is gone, disks stay.
package machine
