// Package collect reads the evidence about a kubelet: its process, /healthz and its parts, its metrics, its
// lease, the runtime, the API server, the disk and the client certificate.
//
//	collector, err := collect.New(collect.Options{Service: unit, Healthz: "http://127.0.0.1:10248/healthz", Client: client, Node: "node-1"})
//	evidence := collector.Collect(ctx) // returns within a few seconds, whatever hangs
//
// Each source has a pace, a timeout and a bound on what it reads. What is not configured, not allowed or not
// readable is not known, with the reason; it is never held against the kubelet.
package collect
