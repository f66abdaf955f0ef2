package shim

// What follows is said in package runtime as well, which a shim does not import: it would
// bring the types of the API along, which are most of a large program. A test of package
// process compares the two.
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
