package explain

// Code identifies the kind of a cause. Programs may match on codes.
type Code string

// Causes of a pod's state.
const (
	CodeUnschedulable        Code = "Unschedulable"
	CodeSchedulingGated      Code = "SchedulingGated"
	CodeNotScheduledYet      Code = "NotScheduledYet"
	CodeMakingRoom           Code = "WaitsForPreemption"
	CodeNotSeenByNode        Code = "NotSeenByNode"
	CodeSandboxNotReady      Code = "SandboxNotReady"
	CodeVolumesNotReady      Code = "VolumesNotReady"
	CodeInitContainers       Code = "InitContainersIncomplete"
	CodeContainersNotReady   Code = "ContainersNotReady"
	CodeReadinessGateMissing Code = "ReadinessGateNeverSet"
	CodeReadinessGateFalse   Code = "ReadinessGateNotTrue"
	CodeReadySetByOther      Code = "ReadyWithdrawnByOther"
	CodeNodeUnreachable      Code = "NodeUnreachable"
	CodeNodeNotReady         Code = "NodeNotReady"
	CodeNodeShutdown         Code = "NodeShutdown"
	CodeStatusBehind         Code = "StatusNotEvaluated"
	CodeWaitsOnNode          Code = "WaitsOnNode"
	CodeNothingKnown         Code = "NothingKnown"
)

// Causes in a container.
const (
	CodeWaitingForInit        Code = "WaitingForInitContainers"
	CodeContainerCreating     Code = "ContainerCreating"
	CodeCrashLoop             Code = "CrashLoopBackOff"
	CodeImage                 Code = "ImageNotAvailable"
	CodeConfig                Code = "ConfigurationMissing"
	CodeCreateFailed          Code = "CreateContainerFailed"
	CodeHookFailed            Code = "HookFailed"
	CodeRestartingAll         Code = "RestartingAllContainers"
	CodeWaiting               Code = "ContainerWaiting"
	CodeNotReported           Code = "ContainerNotReported"
	CodePostStartRunning      Code = "PostStartHookRunning"
	CodeStartupProbe          Code = "StartupProbeNotPassed"
	CodeReadinessProbeFailing Code = "ReadinessProbeFailing"
	CodeReadinessProbePending Code = "ReadinessProbePending"
	CodeReadinessNotReported  Code = "ReadinessNotReported"
	CodeInitRunning           Code = "InitContainerRunning"
	CodeWillRestart           Code = "ContainerWillRestart"
	CodeWillNotRestart        Code = "ContainerWillNotRestart"
	CodeExited                Code = "ContainerExited"
	CodeStartFailed           Code = "StartFailed"
	CodeLivenessKilled        Code = "LivenessProbeFailed"
	CodeLivenessFailing       Code = "LivenessProbeFailing"
	CodeStillRunning          Code = "ContainerStillRunning"
	CodePreStopRunning        Code = "PreStopHookRunning"
	CodeDoesNotDie            Code = "ContainerDoesNotDie"
	CodeNotStopped            Code = "ContainerNotStopped"
	CodeRestarts              Code = "RestartedBefore"
	CodeResizeDeferred        Code = "ResizeDeferred"
	CodeResizeInfeasible      Code = "ResizeInfeasible"
	CodeResizeInProgress      Code = "ResizeInProgress"
	CodeDisruption            Code = "DisruptionTarget"
)

// Causes of an end.
const (
	CodeRejected         Code = "Rejected"
	CodeEvicted          Code = "Evicted"
	CodePreempted        Code = "Preempted"
	CodeDeadlineExceeded Code = "DeadlineExceeded"
	CodeNodeLost         Code = "NodeLost"
	CodeContainersFailed Code = "ContainersFailed"
	CodeCompleted        Code = "ContainersCompleted"
	CodeFailedReason     Code = "FailedWithReason"
	CodeEnded            Code = "Ended"
)

// Causes of an unfinished deletion.
const (
	CodeFinalizers      Code = "Finalizers"
	CodeCleaningUp      Code = "ResourcesNotReclaimed"
	CodeDeletionNotSent Code = "DeletionNotSent"
)

// Causes of a status that the API server does not have yet.
const (
	CodeSending     Code = "Sending"
	CodeRetrying    Code = "DeliveryFails"
	CodeHeld        Code = "DeliveryHeld"
	CodeRefused     Code = "FieldsRefused"
	CodeOtherWriter Code = "OtherWriter"
	CodeOffline     Code = "APIServerUnreachable"
)
