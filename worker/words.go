package worker

// Reasons that people and programs match on, as the kubelet writes them.
const (
	reasonContainerCreating = "ContainerCreating"
	reasonPodInitializing   = "PodInitializing"
	reasonCrashLoopBackOff  = "CrashLoopBackOff"
	reasonPostStartHook     = "PostStartHookError"
	reasonRestartingAll     = "RestartingAllContainers"
	reasonDeadlineExceeded  = "DeadlineExceeded"

	messageDeadlineExceeded = "Pod was active on the node longer than the specified deadline"
	messageVanished         = "The container could not be located when the pod was deleted.  The container used to be Running"
	messageRestartingAll    = "The container is removed because RestartAllContainers in place"
	messageEphemeral        = "ephemeral containers are not supported on this node"
	messageInferred         = "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally"
)

// Reasons of events.
const (
	eventStarted       = "Started"
	eventFailed        = "Failed"
	eventFailedSandbox = "FailedCreatePodSandBox"
	eventFailedKill    = "FailedKillPod"
	eventKilling       = "Killing"
	eventBackOff       = "BackOff"
	eventPostStart     = "FailedPostStartHook"
	eventPreStop       = "FailedPreStopHook"
)

// Reasons of a [Rejection].
const (
	// ReasonUnsupported: the pod asks for what the runtime cannot do; the message names
	// the fields.
	ReasonUnsupported = "PodFeatureUnsupported"
	// ReasonNodeAffinity: the node does not have the labels that the pod asks for.
	ReasonNodeAffinity = "NodeAffinity"
	// ReasonTaint: the node has a taint that the pod does not tolerate.
	ReasonTaint = "TaintToleration"
	// ReasonNodePorts: another pod has a host port that the pod asks for.
	ReasonNodePorts = "NodePorts"
	// ReasonOutOf is followed by the name of the resource that the node has too little of.
	ReasonOutOf = "OutOf"
)
