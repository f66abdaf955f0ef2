// Package agent is a whole node as a value: New, Run, and nothing global, so that a test can have
// two of them in one process. What runs the pods is a [runtime.Runtime] that the program brings:
//
//	config := agent.Embedded("my-node")
//	config.Kubeconfig = "node.kubeconfig"
//	node, err := agent.New(config, agent.Options{Runtime: yours})
//	…
//	err = node.Run(ctx)
//
// Package runtime/function makes a runtime of a function; cmd/statusd brings runtime/process.
//
//	manifests ──► source ─┐                ┌─► table of pods ◄── read by all
//	API server ─► source ─┴─► dispatcher ──┼─► workers ──► runtime ──► containers
//	                                       │      ▲  │
//	                                       │      │  └──► status manager ──► API server
//	                                       │    prober         │
//	                                       └─► mirrors         └──► journal
//
// This package holds no rule about pods. It has the config (config.go), opens files and connections
// (open.go), connects the parts (wire.go) and passes on the changes of the sources (dispatcher.go).
// Starting the parts in order, stopping them in the reverse order and reporting their health is
// internal/process. What statusd run adds to a node is internal/run.
//
// # What it links
//
// A node links what every node needs. kubectl logs, exec, attach, port-forward and top need the kubelet's API, which comes in by value:
//
//	config.Server.BindAddress, config.Server.ClientCAFile = ":10250", "/etc/kubernetes/pki/ca.crt"
//	node, err := agent.New(config, agent.Options{Runtime: yours, KubeletAPI: kubeletapi.ForNode})
//
// # Starting
//
// Static pods wait a moment for the API's first answer, two seconds at most: their mirrors
// hold the statuses from before a restart, so that what was ready stays ready until a
// probe says otherwise. Without an answer they run all the same.
//
// # Stopping
//
// When the context of [Agent.Run] ends, first the sources stop, then the workers, the
// probes, the Node, the status manager (after it has delivered what
// it can), the runtime. Containers are not stopped: the next agent
// adopts those that its runtime still lists. Stopping takes at most ShutdownTimeout.
//
// # Concurrency
//
// [New] starts nothing. Run blocks, may be called once, and has no goroutine left when it
// returns, unless a part did not stop in time, which is an error that names it. The other
// methods may be called from any goroutine.
package agent
