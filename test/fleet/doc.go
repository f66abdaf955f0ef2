// Command fleet is `make fleet`: many nodes of package node/fleet in one process on a real API server, and beside them in the same run KWOK with
// the same nodes and pods. It prints pods Ready per second, the wait of withdrawals, CPU, memory per node and pod, requests per pod,
// idle requests per second, and how late leases were. Each contender has an API server of its own, started for it.
//
//	register ─► create pods (contender stopped) ─► go: until all are Ready ─► idle: leases ─► flaps ─► delete all
//
// It runs itself as the contender of statusd's side (the argument nodes) and as a program that has nothing but an informer
// (the argument informer), with which the memory of a pod is compared.
package main
