// Package statusd is the root of a kit for nodes of Kubernetes: the kubelet's status manager as a
// library, the pure rules behind it, and a whole node agent for any runtime. This package itself is
// empty; begin with the one that fits.
//
//   - You have pods of some kind and want their status in the API: [github.com/statusd/statusd/status] is
//     the manager, [github.com/statusd/statusd/podstatus] makes a status of what you know.
//   - You have a way to run containers and want a node: [github.com/statusd/statusd/agent] with your
//     [github.com/statusd/statusd/runtime], or with a Go function by
//     [github.com/statusd/statusd/runtime/function].
//   - You test either: [github.com/statusd/statusd/statustest] is an API server with faults,
//     [github.com/statusd/statusd/runtime/runtimefake] a runtime, and
//     [github.com/statusd/statusd/runtime/runtimetest] the conformance suite of runtimes.
//
// # The packages
//
//	podstatus   the rules of pod status, as pure functions
//	status      the manager: cache, order, delivery
//	journal     what must survive a crash
//	pods        the pods known on a node; static and mirror pods
//	statustest  a fake API server with faults
//	runtime     the interface to what runs pods
//	worker      one state machine per pod
//	probe       startup, readiness and liveness probes
//	source      where pods come from; manifest and mirror are its neighbors
//	fit         whether a pod fits on a node
//	volume      the files of configMap, secret, downwardAPI and projected volumes
//	node        the Node object and its lease; eviction, shutdown, bootstrap beside it
//	agent       all of it as one value; cmd/statusd is the daemon
//
// docs/embedding.md goes through a bridge to a batch system step by step. The programs under examples
// are complete, and CI builds them as modules of their own.
//
// The module is v0: exported names may change with a minor version, and CHANGELOG.md says how. It works
// with Kubernetes 1.36, k8s.io libraries v0.36 and Go 1.26.
package statusd
