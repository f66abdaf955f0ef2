// Package machine simulates a machine with a node agent: the stock kubelet with containerd and
// runc, or statusd.
//
// The machine is a namespace of processes and of mounts. It has a small disk and a boot ID of its
// own, a logind that announces shutdowns, and an API server of its own that survives its reboots:
//
//	Enter ─► init, the first process: collects orphans; all processes end with it
//	          └─► the caller's program again: New ─► API server, logind, agent ─► pods
//
// Reboot kills every process except the caller and the API server, at one instant, like a loss of
// power; the files in /run are gone, disks stay.
package machine
