// Command fleet is `make fleet`: many nodes of package node/fleet in one process on a real API server, compared with KWOK with the same nodes
// and pods in the same run. It prints pods Ready per second, the wait of withdrawals, CPU, memory per node and pod, requests per pod, idle
// requests per second, and how late leases were. Each contender has its own API server, started for it.
//
//	register ─► create pods (contender stopped) ─► go: until all are Ready ─► idle: leases ─► flaps ─► delete all
//
// It runs itself as statusd's contender (the argument nodes) and as a program that only has an informer (the argument
// informer), with which the memory of a pod is compared.
package main
