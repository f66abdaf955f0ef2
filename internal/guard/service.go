package guard

import "context"

// Service is what the guard starts, stops and restarts: a unit of systemd, or a process that a command restarts.
type Service interface {
	// Name is the operator's name of the service.
	Name() string
	// State returns the state of the process. An error means that the state is unknown.
	State(ctx context.Context) (Process, error)
	// Start, Stop and Restart return when the operation is done or has failed. Starting a running service and
	// stopping a stopped one do nothing.
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
}

// Watcher is a [Service] that reports changes at once.
type Watcher interface {
	// Watch calls changed when the state may have changed, until ctx ends or changes cannot be followed any
	// more. The function must return at once.
	Watch(ctx context.Context, changed func()) error
}
