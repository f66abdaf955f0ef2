// Package run is the process of statusd run as a value: a node of package agent, and the daemon's parts around
// it.
//
//	config, err := run.LoadFile("statusd.yaml")
//	p, err := run.New(config, agent.Options{NewRuntime: …})
//	err = p.Run(ctx)
//
// The console (internal/process/console) is made first, since the node's observer is its history; then the node, whose state lock
// protects the sockets; then both are connected. facts.go has the console's facts of the node, evidence.go the guard's evidence,
// observed.go the records for the history.
package run
