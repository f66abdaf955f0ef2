// Package run is the process of statusd run as a value: a node of package agent, and what a daemon adds to it.
//
//	config, err := run.LoadFile("statusd.yaml")
//	p, err := run.New(config, agent.Options{NewRuntime: …})
//	err = p.Run(ctx)
//
// The console (internal/process/console) is made first, since the node's observer is its history; then the node, whose lock of the
// state protects the sockets; then both are connected. What the console shows of the node is in facts.go, what the guard judges in
// evidence.go, what the history gets in observed.go.
package run
