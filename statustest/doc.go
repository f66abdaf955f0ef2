// Package statustest is a fake API server for tests of programs that report pod statuses.
//
// It behaves as the real one does where it matters to a node, and a conformance test compares the two:
// patches of a status are strategic merge patches by the schema of a pod; podIP and podIPs complete
// each other; UIDs and resource versions are preconditions; invalid statuses are refused with the
// fields named; a patch that changes nothing makes no new version and no watch event; a pod that is
// deleted with a grace period stays until its node removes it.
//
// # Use
//
//	server := statustest.New()
//	manager, err := status.New(status.Options{Client: server.Client()})
//	go manager.Run(ctx)
//	go server.Watch(ctx, handler) // what an informer does
//
//	pod := server.Put(pod)               // as the scheduler binds it
//	manager.SetPodStatus(pod, newStatus) // what is tested
//	server.Pod(pod).Status               // what the API has
//	server.Requests()                    // what it took
//
// There are no connections and no goroutines of the server's own, so that everything may run in a
// testing/synctest bubble: an hour of outage takes no time. So may a program with a clientset and
// informers, whose requests are calls in the process then:
//
//	clientset, err := kubernetes.NewForConfig(server.Config())
//
// [Server] is an http.Handler too, for programs that want an address.
//
// # Faults
//
// [Server.SetFault] decides on each request before it is served. The errors of this package are those
// that a node meets: 409, 403, 404, 422, 429 and 503 of the server and of what stands before it,
// requests that hang ([ErrHang]), writes whose answer is lost ([ErrAnswerLost]), and servers that deny
// what exists ([ServerJustStarted], [LoadBalancerWithoutBackend]). [Server.SetLatency] and
// [Server.SetWatchDelay] make it slow, [Server.SetWebhook] rewrites what is written,
// [Server.Change] is another writer, and [Server.Restore] takes it back to a [Backup].
//
// # What is stored
//
// Pods, and for programs that are a whole node also Nodes with their status, leases, events, config maps, secrets and services,
// each with create, update, patch, delete, list and watch, resource versions and finalizers. Requests for these carry their
// [Request.Resource]; faults apply to them as well. The server does not validate specs, schedule or default anything.
package statustest
