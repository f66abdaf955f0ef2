// Command demo is what make run runs: a control plane, statusd as node "local", and pods
// that do what pods do, from manifests and through the API.
//
//	demo               with a control plane
//	demo --standalone  static pods only
//	demo with COMMAND  with a control plane, for as long as the command runs; KUBECONFIG is set
//	demo footprint     what statusd needs when 100 pods are idle
//	demo guard-cost    what its guard adds to that
//	demo serving       how far a stream client is behind with 500 pods, and what serving it costs
//	demo scale         500 pods started, run and deleted, and nothing left
//	demo unreachable   statusd away for 60 s, and the pods ready again after its return
//	demo faults        200 faults of the machine under 30 pods, and true statuses after each
//
// statusd runs as its own process, as an operator would run it. On Ctrl-C the demo stops
// it, ends the containers, which would run on otherwise, and stops the control plane. The
// data stays in ./state: the next run goes on from there, as after a reboot.
package main
