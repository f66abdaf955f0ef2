package worker

// Reasons that people and programs match on, as the kubelet writes them.
const (
	reasonCrashLoopBackOff = "CrashLoopBackOff"
	reasonPostStartHook    = "PostStartHookError"

	messageEphemeral = "ephemeral containers are not supported on this node"
)

// Reasons of events.
const (
	eventCreated       = "Created"
	eventStarted       = "Started"
	eventFailed        = "Failed"
	eventFailedSandbox = "FailedCreatePodSandBox"
	eventFailedKill    = "FailedKillPod"
	eventKilling       = "Killing"
	eventBackOff       = "BackOff"
	eventPostStart     = "FailedPostStartHook"
	eventHTTPFallback  = "LifecycleHTTPFallback"
	eventPreStop       = "FailedPreStopHook"
)

// ReasonUnsupported is the reason of a rejection: the pod asks for what the runtime cannot
// do; the message names the fields.
const ReasonUnsupported = "PodFeatureUnsupported"
