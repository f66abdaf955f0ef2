package agent

import "github.com/statusd/statusd/internal/process"

// Supervisor is systemd as the receiver of sd_notify(3) messages: ready, stopping, reloading, and
// the watchdog's keep-alive. The zero value disables them.
type Supervisor = process.Supervisor

// SupervisorFromEnvironment returns the supervisor that started this process, from the variables
// that systemd sets. It unsets the variables, so that containers cannot send messages in the
// agent's name.
func SupervisorFromEnvironment() Supervisor { return process.SupervisorFromEnvironment() }
