package guard

import "context"

// Service is what the guard starts, stops and restarts: a unit of systemd, or a process that a command restarts.
type Service interface {
	// Name is what an operator knows it by.
	Name() string
	// State is what is known of the process now. An error means that it is not known.
	State(ctx context.Context) (Process, error)
	// Start, Stop and Restart return when it is done or has failed. Starting what runs and stopping what does not
	// run does nothing.
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
