package runtime

// ProbeKind is what a probe is for. Those who probe containers and those who restart them
// share it.
type ProbeKind string

// The kinds of probes.
const (
	StartupProbe   ProbeKind = "startup"
	ReadinessProbe ProbeKind = "readiness"
	LivenessProbe  ProbeKind = "liveness"
)
