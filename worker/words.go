package worker

// Reasons that people and programs match on, as the kubelet writes them.
const (
	reasonCrashLoopBackOff = "CrashLoopBackOff"
	reasonPostStartHook    = "PostStartHookError"

	messageEphemeral = "ephemeral containers are not supported on this node"
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
