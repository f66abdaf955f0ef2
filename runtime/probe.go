package runtime

// ProbeKind is the purpose of a probe: startup, readiness or liveness.
type ProbeKind string

// The kinds of probes.
const (
	StartupProbe   ProbeKind = "startup"
	ReadinessProbe ProbeKind = "readiness"
	LivenessProbe  ProbeKind = "liveness"
)
