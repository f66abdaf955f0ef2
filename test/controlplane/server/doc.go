// Command controlplane is a real Kubernetes API server with its etcd in one process, for tests,
// benchmarks and trying things out on one machine.
//
//	controlplane --data-dir D [--port P] [--controllers]
//	controlplane kubeconfig --data-dir D (--admin | --node NAME)
//	controlplane certificate --data-dir D --name NAME --out PREFIX
//
// A start takes, in this order: the lock of the data directory, the port, the certificate authority,
// etcd, the API server, and what works on its objects. That is a loop that gives each namespace its
// default service account (package accounts), or, with --controllers, kube-scheduler, the controllers of
// kube-controller-manager that meet a node, and a loop that approves the serving certificates of nodes
// (package nodecerts). It says so once the server is ready, and gives everything back in reverse
// order on SIGTERM or SIGINT. Nothing listens outside the loopback interface; etcd listens on a
// socket inside the data directory only.
package main
