package worker

// Reasons that people and programs match on, as the kubelet writes them.
const (
	reasonCrashLoopBackOff = "CrashLoopBackOff"
	reasonPostStartHook    = "PostStartHookError"
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
