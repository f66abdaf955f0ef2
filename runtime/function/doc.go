// Package function is a runtime whose containers are calls of a Go function: the shortest way
// from "this is how a pod runs here" to a node.
//
//	rt, err := function.New(function.Options{Run: func(ctx context.Context, c function.Call) error {
//		fmt.Fprintln(c.Log, "running", c.Container.Image)
//		return submitAndWait(ctx, c.Container.Command)
//	}})
//
// The function gets the pod, the container and a context, and returns when the container has ended.
// As with each runtime, the caller handles restarts, back-off, init containers, probes and
// statuses.
//
// # What it does not do
//
// Check refuses, by name, each field that the function cannot see: volumes, devices, privileges, ports and namespaces of
// the machine. The container waits with the reason, and the pod is not rejected. If the function honors such a field,
// list the field in [Options].Honors, by kind: "spec.volumes.emptyDir". The service account token volume, which the API
// server adds to each pod, is ignored: no pod waits for the volume, and the volume is not mounted.
//
// The function itself honors the fields that it sees: command, variables (also the references to other objects in valueFrom and
// envFrom), limits. Fields that restrict the process of an image, such as runAsNonRoot, have no effect: no image is run. Probes by
// httpGet, tcpSocket and grpc go to the address of the pod ([Options].IPs), else to the address of the node. Commands cannot be run
// inside a container, so exec probes and exec hooks are always refused.
//
// The runtime keeps no records across a restart of the program: all calls of the function end with
// the program. After a restart, containers that ran are started again. A bridge to a system whose
// jobs outlive the program implements [runtime.Runtime] itself and lists the jobs.
//
// Stopping a container cancels its context. A function that ignores the context cannot be killed:
// its container is listed as running until the function returns, even after the grace period.
//
// # Concurrency
//
// All methods may be called from any goroutine. Each call of the function is a goroutine of its
// own. [Runtime.Close] cancels all contexts and waits for the calls to return.
package function
