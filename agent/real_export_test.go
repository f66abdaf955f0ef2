//go:build real

package agent

// Shared is the API server of the tests in package agent_test.
var Shared = &shared
