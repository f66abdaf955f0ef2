package shim

// These constants are copies from package runtime, which a shim does not import, because the API
// types would make up most of the shim's size. A test of package process compares the copies.
const (
	Scheme         = "process://"
	MarkerVariable = "STATUSD_CONTAINER_ID"

	ReasonCompleted  = "Completed"
	ReasonError      = "Error"
	ReasonStartError = "StartError"
	ReasonOOMKilled  = "OOMKilled"

	ExitCodeStartError = 128

	MaxMessageBytes = 4096
)
