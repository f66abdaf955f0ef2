// Package collect reads the evidence about a kubelet: its process, /healthz and its parts, its metrics, its
// lease, the runtime, the API server, the disk and the client certificate.
//
//	collector, err := collect.New(collect.Options{Service: unit, Healthz: "http://127.0.0.1:10248/healthz", Client: client, Node: "node-1"})
//	evidence := collector.Collect(ctx) // returns within a few seconds, whatever hangs
//
// Each source has an interval, a timeout and a bound on the size of its data. Sources that are not
// configured, not allowed or not readable are unknown, with the reason; an unknown fact never counts against
// the kubelet.
package collect
