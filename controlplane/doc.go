// Command controlplane is a real Kubernetes API server with its etcd in one process, for tests,
// benchmarks and trying things out on one machine.
//
//	controlplane --data-dir D [--port P]
//	controlplane kubeconfig --data-dir D (--admin | --node NAME)
//
// A start takes, in this order: the lock of the data directory, the port, the certificate authority,
// etcd, the API server, and a loop that gives each namespace its default service account (package
// accounts). It says so once the server is ready, and gives everything back in reverse
// order on SIGTERM or SIGINT. Nothing listens outside the loopback interface; etcd listens on a
// socket inside the data directory only.
package main
