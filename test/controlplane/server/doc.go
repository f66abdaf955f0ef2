// Command controlplane is a real Kubernetes API server with its etcd in one process, for tests,
// benchmarks and trying things out on one machine.
//
//	controlplane --data-dir D [--port P] [--controllers]
//	controlplane kubeconfig --data-dir D (--admin | --node NAME)
//	controlplane certificate --data-dir D --name NAME --out PREFIX
//
// A start takes, in this order: the lock of the data directory, the port, the certificate authority,
// etcd, the API server, and the loops that work on its objects: a loop that creates the default service
// account of each namespace (package accounts), or, with --controllers, kube-scheduler, the controllers
// of kube-controller-manager that concern a node, and a loop that approves the serving certificates of
// nodes (package nodecerts). It prints a line once the server is ready, and stops all parts in reverse
// order on SIGTERM or SIGINT. Nothing listens outside the loopback interface; etcd listens on a socket
// inside the data directory only.
package main
