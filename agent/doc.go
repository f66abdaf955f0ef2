// Package agent runs a whole node inside a program: New, Run, and no global state, so that one
// process can run two nodes. The program brings the [runtime.Runtime] that runs the pods:
//
//	config := agent.Embedded("my-node")
//	config.Kubeconfig = "node.kubeconfig"
//	node, err := agent.New(config, agent.Options{Runtime: yours})
//	…
//	err = node.Run(ctx)
//
// Package runtime/function makes a runtime from a function; cmd/statusd brings runtime/process.
//
//	manifests ──► source ─┐                ┌─► table of pods ◄── read by all
//	API server ─► source ─┴─► dispatcher ──┼─► workers ──► runtime ──► containers
//	                                       │      ▲  │
//	                                       │      │  └──► status manager ──► API server
//	                                       │    prober         │
//	                                       └─► mirrors         └──► journal
//
// This package contains no rules about pods. It has the config (config.go), opens files and
// connections (open.go), connects the parts (wire.go) and passes on the changes of the sources
// (dispatcher.go). Package internal/process starts the parts in order, stops them in the reverse
// order and reports their health. Package internal/run has what statusd run adds to a node.
//
// # What it links
//
// A node links only what every node needs. For kubectl logs, exec, attach, port-forward and top, pass the kubelet's API as an option:
//
//	config.Server.BindAddress, config.Server.ClientCAFile = ":10250", "/etc/kubernetes/pki/ca.crt"
//	node, err := agent.New(config, agent.Options{Runtime: yours, KubeletAPI: kubeletapi.ForNode})
//
// # Starting
//
// Static pods wait at most two seconds for the first answer of the API: the mirror pods hold the
// statuses from before a restart, so that ready containers stay ready until a probe fails. Without
// an answer, static pods start after the two seconds.
//
// # Stopping
//
// When the context of [Agent.Run] ends, the parts stop in this order: sources, workers, probes,
// Node, status manager (after it has delivered what it can), runtime. Containers are not stopped:
// the next agent adopts the containers that its runtime still lists. Stopping takes at most
// ShutdownTimeout.
//
// # Concurrency
//
// [New] starts nothing. Run blocks and may be called once. No goroutine is left when Run returns,
// unless a part did not stop in time; the error of Run then names the part. The other methods may
// be called from any goroutine.
package agent
