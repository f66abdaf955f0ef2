// Package function is a runtime whose containers are calls of a Go function: the shortest way
// from "this is how a pod runs here" to a node.
//
//	rt, err := function.New(function.Options{Run: func(ctx context.Context, c function.Call) error {
//		fmt.Fprintln(c.Log, "running", c.Container.Image)
//		return submitAndWait(ctx, c.Container.Command)
//	}})
//
// The function gets the pod, the container and a context, and returns when the container has
// ended. Restarts, back-off, init containers, probes and statuses are the caller's, as for each
// runtime.
//
// # What it does not do
//
// A field that asks the machine for something which the function does not see is refused by Check, by name: volumes,
// devices, privileges, ports and namespaces of the machine. The container waits with the reason, and the pod is not
// rejected. A function that honors such a field says so in [Options].Honors, by kind: "spec.volumes.emptyDir". The volume
// with the token of the service account, which the API server adds to each pod, keeps no pod waiting; it is not
// there either.
//
// What the function sees is the function's to honor: command, variables (also those of valueFrom and envFrom, which are
// references to other objects), limits. Fields that restrict the process of an image, such as runAsNonRoot, have no
// effect: no image is run. Probes by httpGet, tcpSocket and grpc go to the address of the pod ([Options].IPs), else to that of the node.
// Commands cannot be run inside a container, so exec probes and exec hooks are always refused.
//
// It remembers nothing across a restart of the program, and there is nothing to remember: what
// the function runs ends with the program. Containers that ran are started again by the next
// one. A bridge to a system whose jobs live on implements [runtime.Runtime] itself and lists
// them.
//
// A container is asked to stop by the end of its context. A function that ignores it cannot be
// killed: its container is listed as running until it returns, also after the grace.
//
// # Concurrency
//
// All methods may be called from any goroutine. Each call of the function is a goroutine of its
// own. [Runtime.Close] ends the contexts of all and waits for them.
package function
