// Package statustest is a fake API server for tests of programs that report pod statuses.
//
// The fake behaves as the real API server where it matters to a node, and a conformance test compares
// the two: patches of a status are strategic merge patches by the schema of a pod; podIP and podIPs
// complete each other; UIDs and resource versions are preconditions; invalid statuses are refused with
// the names of the fields; a patch that changes nothing creates no new version and no watch event; a
// pod that is deleted with a grace period stays until its node removes it.
//
// # Use
//
//	server := statustest.New()
//	manager, err := status.New(status.Options{Client: server.Client()})
//	go manager.Run(ctx)
//	go server.Watch(ctx, handler) // as an informer does
//
//	pod := server.Put(pod)               // as the scheduler binds it
//	manager.SetPodStatus(pod, newStatus) // the code under test
//	server.Pod(pod).Status               // the status in the API
//	server.Requests()                    // the requests received
//
// The server has no connections and no goroutines, so that everything may run in a testing/synctest
// bubble: an hour of outage takes no time. A program with a clientset and informers may run in the
// bubble too; its requests are function calls then:
//
//	clientset, err := kubernetes.NewForConfig(server.Config())
//
// [Server] is an http.Handler too, for programs that need an address.
//
// # Faults
//
// [Server.SetFault] decides on each request before it is served. The errors of this package are the
// errors that nodes see: 409, 403, 404, 422, 429 and 503 of the server and of the proxies before it,
// requests that hang ([ErrHang]), writes whose answer is lost ([ErrAnswerLost]) or that take effect
// after the client has given up ([Late]), and servers that
// answer 404 or 403 for existing pods ([ServerJustStarted], [LoadBalancerWithoutBackend]).
// [Server.SetLatency] and [Server.SetWatchDelay] make the server slow, [Server.SetWebhook] rewrites
// written objects, [Server.Change] acts as another writer, and [Server.Restore] restores a [Backup].
//
// # Stored objects
//
// Pods, and for programs that are a whole node also Nodes with their status, leases, events, config maps, secrets and services,
// each with create, update, patch, delete, list and watch, resource versions and finalizers. Requests for these carry their
// [Request.Resource]; faults apply to them as well. The server does not validate specs, schedule or default anything.
package statustest
