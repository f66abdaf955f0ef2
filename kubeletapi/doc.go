// Package kubeletapi serves the API that a kubelet serves on port 10250, so that kubectl logs, exec,
// attach, port-forward, cp and top work on a node of any [runtime.Runtime].
//
//	TLS ─► connection limit ─► who is it? ─► may they? ─► path ─► runtime, table of pods
//	                           │             │
//	                           │             └ SubjectAccessReview on nodes/SUBRESOURCE, cached
//	                           └ client certificate, or TokenReview, cached; never anonymous
//
// Paths, methods, status codes and texts are those of the kubelet: clients such as the API server and
// metrics-server depend on them. testdata/doors.txt has the answers of a stock kubelet to each kind of
// credentials on each path, and a test compares.
//
// [New] starts nothing; [Server.Run] serves until its context ends, and leaves no goroutine, connection
// or command behind. A command that a client has started ends with the client's connection.
package kubeletapi
