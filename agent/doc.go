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
// This package holds no rule about pods. It reads the config (config.go, settings.go,
// validate.go), opens files and connections (open.go), connects the parts
// (wire.go), passes on the changes of the sources (dispatcher.go), starts the parts in order and
// stops them in the reverse order (lifecycle.go), and reports its health
// (health.go, systemd.go).
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
// adopts those that its runtime still lists. All of that takes at most ShutdownTimeout.
//
// # Concurrency
//
// [New] starts nothing. Run blocks, may be called once, and has no goroutine left when it
// returns, unless a part did not stop in time, which is an error that names it. The other
// methods may be called from any goroutine.
package agent
