// Command demo is what make run runs: a control plane, statusd as node "local", and pods with
// typical lives, from manifests and through the API.
//
//	demo               with a control plane
//	demo --standalone  static pods only
//	demo with COMMAND  with a control plane, for as long as the command runs; KUBECONFIG is set
//	demo footprint     what statusd needs when 100 pods are idle
//	demo guard-cost    what its guard adds to that
//	demo serving       how far a stream client is behind with 500 pods, and what serving it costs
//	demo speed         how soon pods are Ready and deleted, beside another version of statusd
//	demo scale         500 pods started, run and deleted, and nothing left
//	demo upgrade       statusd replaced by another version and back under 200 pods
//	demo unreachable   statusd away for 60 s, and the pods ready again after its return
//	demo faults        200 faults of the machine under 30 pods, and true statuses after each
//
// statusd runs as its own process, as an operator would run it. On Ctrl-C the demo stops it, ends
// the containers, which would keep running otherwise, and stops the control plane. The data stays
// in ./state: the next run continues with it, as after a reboot.
package main
