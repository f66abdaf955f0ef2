// Package kubeletapi serves the kubelet API (port 10250), so that kubectl logs, exec, attach,
// port-forward, cp and top work on a node of any [runtime.Runtime].
//
//	TLS ─► connection limit ─► who is it? ─► may they? ─► path ─► runtime, table of pods
//	                           │             │
//	                           │             └ SubjectAccessReview on nodes/SUBRESOURCE, cached
//	                           └ client certificate, or TokenReview, cached; never anonymous
//
// Paths, methods, status codes and texts equal those of the kubelet: clients such as the API server
// and metrics-server depend on them. A test compares the responses to each kind of credentials on each
// path with those of a stock kubelet (testdata/doors.txt).
//
// [New] starts nothing; [Server.Run] serves until its context ends, and leaves no goroutine, connection
// or command behind. A command started by a client ends with the client's connection.
package kubeletapi
