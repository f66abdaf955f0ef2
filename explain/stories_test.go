package explain_test

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/podstatus"
)

// facts are those of a pod with one container, "db", changed as asked for.
func facts(changes ...func(*v1.Pod)) explain.Facts {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", CreationTimestamp: metav1.Time{Time: ago(10 * time.Minute)}},
		Spec:       v1.PodSpec{NodeName: "n1", RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "db"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return explain.Facts{Now: now, Pod: pod}
}

func condition(t v1.PodConditionType, status v1.ConditionStatus, reason, message string) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: ago(38 * time.Second)}}
}

func running(d time.Duration) v1.ContainerState {
	return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: ago(d)}}}
}

func waiting(reason, message string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func ended(reason string, code int32, message string) v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message, FinishedAt: metav1.Time{Time: ago(20 * time.Second)}}}
}

func httpProbe(port int) *v1.Probe {
	return &v1.Probe{PeriodSeconds: 5, FailureThreshold: 3, ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt(port)}}}
}

// with sets the phase, the one container's state and the Ready condition.
func with(phase v1.PodPhase, state v1.ContainerState, ready v1.ConditionStatus) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.Phase = phase
		p.Status.StartTime = &metav1.Time{Time: ago(9 * time.Minute)}
		s := v1.ContainerStatus{Name: "db", State: state, Ready: ready == v1.ConditionTrue}
		if state.Running != nil {
			started := true
			s.Started, s.ContainerID = &started, "process://1"
		}
		p.Status.ContainerStatuses = []v1.ContainerStatus{s}
		p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodReady, ready, "", ""))
	}
}

func failedWith(reason, message string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = v1.PodFailed, reason, message
	}
}

func deleted(grace int64, left time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: now.Add(left)}
		p.DeletionGracePeriodSeconds = &grace
	}
}

func initContainer(state v1.ContainerState) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "migrate"}}
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "migrate", State: state}}
	}
}

func stories() []story {
	crashed := func(p *v1.Pod) {
		p.Status.ContainerStatuses[0].RestartCount = 4
		p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 3, "no such table: users\n")
	}
	notReady := with(v1.PodRunning, running(2*time.Minute), v1.ConditionFalse)
	probed := func(p *v1.Pod) { p.Spec.Containers[0].ReadinessProbe = httpProbe(5432) }
	return []story{
		{"ready", explain.StateReady, nil,
			func() explain.Facts { return facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue)) }},
		{"ready after restarts", explain.StateReady, nil,
			func() explain.Facts { return facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue), crashed) }},
		{"readiness probe fails", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeReadinessProbeFailing},
			func() explain.Facts {
				f := facts(notReady, probed)
				f.Containers = map[string]explain.Container{"db": {Readiness: &podstatus.Probe{Failures: 14, Since: ago(70 * time.Second), Answer: "dial tcp 10.0.0.1:5432: connect: connection refused"}}}
				return f
			}},
		{"readiness probe fails, known by an event", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeReadinessProbeFailing},
			func() explain.Facts {
				f := facts(notReady, probed)
				f.Warnings = []explain.Warning{{Reason: "Unhealthy", Container: "db", Message: "Readiness probe failed: HTTP probe failed with statuscode: 500", Last: ago(time.Second)}}
				return f
			}},
		{"readiness probe not due yet", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeReadinessProbePending},
			func() explain.Facts {
				return facts(with(v1.PodRunning, running(2*time.Second), v1.ConditionFalse), probed, func(p *v1.Pod) {
					p.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds = 30
				})
			}},
		{"startup probe", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeStartupProbe},
			func() explain.Facts {
				f := facts(notReady, func(p *v1.Pod) {
					p.Spec.Containers[0].StartupProbe = httpProbe(5432)
					p.Status.ContainerStatuses[0].Started = nil
				})
				f.Containers = map[string]explain.Container{"db": {Startup: &podstatus.Probe{Failures: 2, Since: ago(10 * time.Second), Answer: "context deadline exceeded"}}}
				return f
			}},
		{"no readiness probe and not ready", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeReadinessNotReported},
			func() explain.Facts { return facts(notReady) }},
		{"postStart hook runs", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodePostStartRunning},
			func() explain.Facts {
				f := facts(notReady)
				f.Containers = map[string]explain.Container{"db": {ContainerFacts: podstatus.ContainerFacts{Hook: "postStart", HookSince: ago(15 * time.Second)}}}
				return f
			}},
		{"crash loop", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeCrashLoop, explain.CodeExited},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", "back-off 40s restarting failed container=db"), v1.ConditionFalse), crashed)
				f.Containers = map[string]explain.Container{"db": {ContainerFacts: podstatus.ContainerFacts{NextStart: now.Add(38 * time.Second)}}}
				return f
			}},
		{"crash loop by the liveness probe", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeCrashLoop, explain.CodeExited, explain.CodeLivenessKilled},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), crashed, func(p *v1.Pod) {
					p.Spec.Containers[0].LivenessProbe = httpProbe(5432)
					p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 143, "")
				})
				f.Containers = map[string]explain.Container{"db": {Liveness: &podstatus.Probe{Failures: 3, Answer: "HTTP probe failed with statuscode: 500"}}}
				return f
			}},
		{"out of memory", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeWillRestart, explain.CodeExited},
			func() explain.Facts {
				return facts(with(v1.PodRunning, ended("OOMKilled", 137, ""), v1.ConditionFalse))
			}},
		{"could not be started", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeWillRestart, explain.CodeExited},
			func() explain.Facts {
				return facts(with(v1.PodRunning, ended("StartError", 128, "exec: no such file"), v1.ConditionFalse))
			}},
		{"ended and not started again", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeWillNotRestart, explain.CodeExited},
			func() explain.Facts {
				return facts(with(v1.PodRunning, ended("Completed", 0, ""), v1.ConditionFalse), func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever })
			}},
		{"gate never set", explain.StateNotReady, []explain.Code{explain.CodeReadinessGateMissing},
			func() explain.Facts {
				return facts(notReady, func(p *v1.Pod) {
					p.Status.ContainerStatuses[0].Ready = true
					p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "x/y"}}
				})
			}},
		{"gate not true", explain.StateNotReady, []explain.Code{explain.CodeReadinessGateFalse},
			func() explain.Facts {
				return facts(notReady, func(p *v1.Pod) {
					p.Status.ContainerStatuses[0].Ready = true
					p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "x/y"}}
					p.Status.Conditions = append(p.Status.Conditions, condition("x/y", v1.ConditionFalse, "NoBackend", "the load balancer has no target."))
				})
			}},
		{"unready by another writer", explain.StateNotReady, []explain.Code{explain.CodeReadySetByOther},
			func() explain.Facts {
				return facts(notReady, func(p *v1.Pod) {
					p.Status.ContainerStatuses[0].Ready = true
					p.Status.Conditions[0].Reason = "NodeNotReady"
				})
			}},
		{"node shuts down", explain.StateNotReady, []explain.Code{explain.CodeNodeShutdown},
			func() explain.Facts {
				f := facts(notReady)
				f.Node.ShuttingDown = true
				return f
			}},
		{"ready not evaluated", explain.StateNotReady, []explain.Code{explain.CodeStatusBehind},
			func() explain.Facts {
				return facts(notReady, func(p *v1.Pod) {
					p.Status.ContainerStatuses[0].Ready = true
					p.Status.Conditions = nil
				})
			}},
		{"gated", explain.StateUnscheduled, []explain.Code{explain.CodeSchedulingGated},
			func() explain.Facts {
				return facts(func(p *v1.Pod) {
					p.Spec.NodeName, p.Spec.SchedulingGates = "", []v1.PodSchedulingGate{{Name: "quota"}}
				})
			}},
		{"unschedulable", explain.StateUnscheduled, []explain.Code{explain.CodeUnschedulable},
			func() explain.Facts {
				return facts(func(p *v1.Pod) {
					p.Spec.NodeName = ""
					p.Status.Conditions = []v1.PodCondition{condition(v1.PodScheduled, v1.ConditionFalse, "Unschedulable", "0/3 nodes are available: 3 Insufficient memory.")}
				})
			}},
		{"no scheduler", explain.StateUnscheduled, []explain.Code{explain.CodeNotScheduledYet},
			func() explain.Facts { return facts(func(p *v1.Pod) { p.Spec.NodeName = "" }) }},
		{"not taken up", explain.StateStarting, []explain.Code{explain.CodeNotSeenByNode},
			func() explain.Facts { return facts(func(p *v1.Pod) { p.Status.Phase = v1.PodPending }) }},
		{"not taken up by a dead node", explain.StateStarting, []explain.Code{explain.CodeNodeUnreachable},
			func() explain.Facts {
				f := facts(func(p *v1.Pod) { p.Status.Phase = v1.PodPending })
				f.Node.Silent = ago(3 * time.Minute)
				return f
			}},
		{"volume missing", explain.StateStarting, []explain.Code{explain.CodeSandboxNotReady, explain.CodeVolumesNotReady},
			func() explain.Facts {
				f := facts(with(v1.PodPending, waiting("ContainerCreating", ""), v1.ConditionFalse), func(p *v1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodReadyToStartContainers, v1.ConditionFalse, "", ""))
				})
				f.Warnings = []explain.Warning{{Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "config" : configmap "settings" not found`, Last: ago(3 * time.Second)}}
				return f
			}},
		{"no sandbox", explain.StateStarting, []explain.Code{explain.CodeSandboxNotReady, explain.CodeCreateFailed},
			func() explain.Facts {
				f := facts(with(v1.PodPending, waiting("ContainerCreating", ""), v1.ConditionFalse), func(p *v1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodReadyToStartContainers, v1.ConditionFalse, "", ""))
				})
				f.Warnings = []explain.Warning{{Reason: "FailedCreatePodSandBox", Message: "no network plug-in"}}
				return f
			}},
		{"being prepared", explain.StateStarting, []explain.Code{explain.CodeSandboxNotReady},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("ContainerCreating", ""), v1.ConditionFalse), func(p *v1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodReadyToStartContainers, v1.ConditionFalse, "", ""))
				})
			}},
		{"being created", explain.StateStarting, []explain.Code{explain.CodeContainersNotReady, explain.CodeContainerCreating},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("ContainerCreating", ""), v1.ConditionFalse))
			}},
		{"config map missing", explain.StateStarting, []explain.Code{explain.CodeContainersNotReady, explain.CodeConfig},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("CreateContainerConfigError", `configmap "settings" not found`), v1.ConditionFalse))
			}},
		{"image", explain.StateStarting, []explain.Code{explain.CodeContainersNotReady, explain.CodeImage},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("ImagePullBackOff", `Back-off pulling image "db:16"`), v1.ConditionFalse))
			}},
		{"cannot be created", explain.StateStarting, []explain.Code{explain.CodeContainersNotReady, explain.CodeCreateFailed},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("CreateContainerError", "context deadline exceeded"), v1.ConditionFalse))
			}},
		{"cannot be started", explain.StateStarting, []explain.Code{explain.CodeContainersNotReady, explain.CodeStartFailed},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("RunContainerError", "exec: no such file"), v1.ConditionFalse))
			}},
		{"hook failed", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeHookFailed},
			func() explain.Facts {
				return facts(with(v1.PodRunning, waiting("PostStartHookError", "exit status 1"), v1.ConditionFalse))
			}},
		{"all restarting", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeRestartingAll},
			func() explain.Facts {
				return facts(with(v1.PodRunning, waiting("RestartingAllContainers", ""), v1.ConditionFalse))
			}},
		{"a reason never seen before", explain.StateStarting, []explain.Code{explain.CodeContainersNotReady, explain.CodeWaiting},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("GPUWarmingUp", "12 of 40 GiB"), v1.ConditionFalse))
			}},
		{"init container runs", explain.StateInitializing, []explain.Code{explain.CodeInitContainers, explain.CodeInitRunning},
			func() explain.Facts {
				return facts(with(v1.PodPending, waiting("PodInitializing", ""), v1.ConditionFalse), initContainer(running(90*time.Second)))
			}},
		{"init container loops", explain.StateInitializing, []explain.Code{explain.CodeInitContainers, explain.CodeCrashLoop, explain.CodeExited},
			func() explain.Facts {
				f := facts(with(v1.PodPending, waiting("PodInitializing", ""), v1.ConditionFalse), initContainer(waiting("CrashLoopBackOff", "")), func(p *v1.Pod) {
					p.Status.InitContainerStatuses[0].LastTerminationState = ended("Error", 1, "cannot reach db")
				})
				f.Containers = map[string]explain.Container{"migrate": {ContainerFacts: podstatus.ContainerFacts{NextStart: now.Add(10 * time.Second)}}}
				return f
			}},
		{"container not reported", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeNotReported},
			func() explain.Facts {
				return facts(notReady, func(p *v1.Pod) { p.Status.ContainerStatuses = nil })
			}},
		{"init done, waiting still", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeWaitingForInit},
			func() explain.Facts {
				return facts(with(v1.PodRunning, waiting("PodInitializing", ""), v1.ConditionFalse), initContainer(ended("Completed", 0, "")))
			}},
		{"started, phase behind", explain.StateStarting, []explain.Code{explain.CodeStatusBehind},
			func() explain.Facts { return facts(with(v1.PodPending, running(time.Second), v1.ConditionTrue)) }},
		{"stopping", explain.StateTerminating, []explain.Code{explain.CodeNotStopped, explain.CodeStillRunning},
			func() explain.Facts { return facts(notReady, deleted(30, 12*time.Second)) }},
		{"preStop hook runs", explain.StateTerminating, []explain.Code{explain.CodeNotStopped, explain.CodePreStopRunning},
			func() explain.Facts {
				f := facts(notReady, deleted(30, 12*time.Second))
				f.Containers = map[string]explain.Container{"db": {ContainerFacts: podstatus.ContainerFacts{Hook: "preStop", HookSince: ago(18 * time.Second)}}}
				return f
			}},
		{"being killed", explain.StateTerminating, []explain.Code{explain.CodeNotStopped, explain.CodeStillRunning},
			func() explain.Facts { return facts(notReady, deleted(30, -2*time.Second)) }},
		{"does not die", explain.StateTerminating, []explain.Code{explain.CodeNotStopped, explain.CodeDoesNotDie},
			func() explain.Facts { return facts(notReady, deleted(30, -5*time.Minute)) }},
		{"node gone while terminating", explain.StateTerminating, []explain.Code{explain.CodeNodeUnreachable},
			func() explain.Facts {
				f := facts(notReady, deleted(30, -5*time.Minute))
				f.Node.Silent = ago(10 * time.Minute)
				return f
			}},
		{"finalizer", explain.StateTerminating, []explain.Code{explain.CodeFinalizers},
			func() explain.Facts {
				return facts(with(v1.PodSucceeded, ended("Completed", 0, ""), v1.ConditionFalse), deleted(30, -time.Minute), func(p *v1.Pod) {
					p.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
				})
			}},
		{"not cleaned up", explain.StateTerminating, []explain.Code{explain.CodeCleaningUp},
			func() explain.Facts {
				f := facts(with(v1.PodFailed, ended("Error", 137, ""), v1.ConditionFalse), deleted(30, -time.Minute))
				f.Delivery = &podstatus.Delivery{Version: 4, Accepted: 4, Held: "the resources of the finished pod are not reclaimed yet", NextTry: now.Add(2 * time.Second)}
				return f
			}},
		{"deletion not delivered", explain.StateTerminating, []explain.Code{explain.CodeDeletionNotSent},
			func() explain.Facts {
				f := facts(with(v1.PodFailed, ended("Error", 137, ""), v1.ConditionFalse), deleted(30, -time.Minute))
				f.Delivery = &podstatus.Delivery{Version: 4, Accepted: 3, Since: ago(20 * time.Second), Attempts: 3, Error: "the server is currently unable to handle the request", NextTry: now.Add(8 * time.Second)}
				return f
			}},
		{"rejected for memory", explain.StateRejected, []explain.Code{explain.CodeRejected},
			func() explain.Facts {
				return facts(failedWith("OutOfmemory", "Pod was rejected: Node didn't have enough resource: memory, requested: 8589934592, used: 0, capacity: 4294967296"))
			}},
		{"rejected for a taint", explain.StateRejected, []explain.Code{explain.CodeRejected},
			func() explain.Facts { return facts(failedWith("TaintToleration", "")) }},
		{"evicted", explain.StateEvicted, []explain.Code{explain.CodeEvicted},
			func() explain.Facts {
				return facts(failedWith("Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi."))
			}},
		{"evicted with a controller", explain.StateEvicted, []explain.Code{explain.CodeEvicted},
			func() explain.Facts {
				isController := true
				return facts(failedWith("Evicted", ""), func(p *v1.Pod) {
					p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &isController}}
				})
			}},
		{"preempted", explain.StateEvicted, []explain.Code{explain.CodePreempted},
			func() explain.Facts {
				return facts(failedWith("Preempting", "Preempted in order to admit critical pod"))
			}},
		{"deadline", explain.StateFailed, []explain.Code{explain.CodeDeadlineExceeded},
			func() explain.Facts {
				return facts(failedWith("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))
			}},
		{"node was shut down", explain.StateFailed, []explain.Code{explain.CodeNodeShutdown},
			func() explain.Facts {
				return facts(failedWith("Terminated", "Pod was terminated in response to imminent node shutdown."))
			}},
		{"node lost", explain.StateFailed, []explain.Code{explain.CodeNodeLost}, func() explain.Facts { return facts(failedWith("NodeLost", "")) }},
		{"a failure never seen before", explain.StateFailed, []explain.Code{explain.CodeFailedReason}, func() explain.Facts { return facts(failedWith("QuotaUsedUp", "42 of 40")) }},
		{"containers failed", explain.StateFailed, []explain.Code{explain.CodeContainersFailed},
			func() explain.Facts {
				return facts(with(v1.PodFailed, ended("Error", 127, "sh: foo: not found"), v1.ConditionFalse), func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever })
			}},
		{"failed without anything", explain.StateFailed, []explain.Code{explain.CodeFailedReason}, func() explain.Facts { return facts(failedWith("", "")) }},
		{"succeeded", explain.StateSucceeded, []explain.Code{explain.CodeCompleted},
			func() explain.Facts {
				return facts(with(v1.PodSucceeded, ended("Completed", 0, ""), v1.ConditionFalse))
			}},
		{"unknown", explain.StateUnknown, []explain.Code{explain.CodeNodeUnreachable},
			func() explain.Facts {
				return facts(func(p *v1.Pod) { p.Status.Phase, p.Status.Reason = v1.PodUnknown, "NodeLost" })
			}},
		{"liveness probe begins to fail", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue), func(p *v1.Pod) { p.Spec.Containers[0].LivenessProbe = httpProbe(5432) })
				f.Containers = map[string]explain.Container{"db": {Liveness: &podstatus.Probe{Failures: 2, Since: ago(8 * time.Second), Answer: "context deadline exceeded"}}}
				return f
			}},
		{"killed by the liveness probe, known by an event", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeCrashLoop, explain.CodeExited, explain.CodeLivenessKilled},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) {
					p.Spec.Containers[0].LivenessProbe = httpProbe(5432)
					p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 137, "")
				})
				f.Warnings = []explain.Warning{
					{Reason: "Unhealthy", Container: "db", Message: "Liveness probe failed: HTTP probe failed with statuscode: 500", Count: 3, Last: ago(25 * time.Second)},
					{Reason: "Unhealthy", Container: "db", Message: "Readiness probe failed: connection refused", Count: 9, Last: ago(21 * time.Second)},
				}
				return f
			}},
		{"killed by another after one failure of the liveness probe", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeCrashLoop, explain.CodeExited},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) {
					p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 137, "")
				})
				f.Warnings = []explain.Warning{{Reason: "Unhealthy", Container: "db", Message: "Liveness probe failed: connection refused", Count: 1, Last: ago(25 * time.Second)}}
				return f
			}},
		{"killed by another long after failures of the liveness probe", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeCrashLoop, explain.CodeExited},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) {
					p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 137, "")
				})
				f.Warnings = []explain.Warning{{Reason: "Unhealthy", Container: "db", Message: "Liveness probe failed: connection refused", Count: 3, Last: ago(4 * time.Minute)}}
				return f
			}},
		{"evicted, pressure lasts", explain.StateEvicted, []explain.Code{explain.CodeEvicted},
			func() explain.Facts {
				f := facts(failedWith("Evicted", "The node was low on resource: memory."))
				f.Node.Pressure = []v1.NodeConditionType{v1.NodeMemoryPressure}
				return f
			}},
		{"rejected under pressure", explain.StateRejected, []explain.Code{explain.CodeRejected},
			func() explain.Facts {
				return facts(failedWith("Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. "))
			}},
		{"waits for a pod of the same name", explain.StateStarting, []explain.Code{explain.CodeWaitsOnNode},
			func() explain.Facts {
				f := facts(func(p *v1.Pod) { p.Status = v1.PodStatus{Phase: v1.PodPending} })
				f.Waits = "an older pod of the same name has containers that still run"
				return f
			}},
		{"a container that the spec does not have", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeCrashLoop},
			func() explain.Facts {
				return facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), func(p *v1.Pod) { p.Spec.Containers = nil })
			}},
		{"a clock that is ahead", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Now = ago(24 * time.Hour)
				return f
			}},
		{"resize deferred", explain.StateReady, nil,
			func() explain.Facts {
				return facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue), func(p *v1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodResizePending, v1.ConditionTrue, v1.PodReasonDeferred, "Node didn't have enough resource: cpu"))
				})
			}},
		{"resize infeasible", explain.StateReady, nil,
			func() explain.Facts {
				return facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue), func(p *v1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodResizePending, v1.ConditionTrue, v1.PodReasonInfeasible, ""),
						condition(v1.PodResizeInProgress, v1.ConditionTrue, "", ""), condition(v1.DisruptionTarget, v1.ConditionTrue, "EvictionByEvictionAPI", ""))
				})
			}},
		{"server down", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Delivery = &podstatus.Delivery{Version: 9, Accepted: 7, Since: ago(75 * time.Second), Attempts: 12, Error: "503 Service Unavailable", NextTry: now.Add(8 * time.Second)}
				return f
			}},
		{"another writer", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Delivery = &podstatus.Delivery{Version: 9, Accepted: 9, Writer: "bad-controller", Rounds: 5, NextTry: now.Add(30 * time.Second)}
				return f
			}},
		{"fields refused", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Delivery = &podstatus.Delivery{Version: 9, Accepted: 8, Refused: []string{"status.qosClass"}, Error: "field is immutable", NextTry: now.Add(time.Minute)}
				return f
			}},
		{"held on the node", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Delivery = &podstatus.Delivery{Version: 2, Accepted: 0, Held: "the static pod has no mirror pod yet"}
				return f
			}},
		{"offline", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Delivery, f.Node.Unreachable = &podstatus.Delivery{Version: 2, Accepted: 1, Since: ago(5 * time.Second)}, ago(time.Minute)
				return f
			}},
		{"not true: the container is gone", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Untrue = []explain.Untruth{{
					Kind: "RunningWithoutContainer", Container: "db", Since: ago(95 * time.Second),
					Text: "the API says that container db runs, and it has ended with exit code 137.",
					Evidence: []explain.Statement{
						{By: "the runtime", At: ago(time.Second), Text: "container db (c0ffee) exited with code 137"},
						{By: "the API", At: ago(2 * time.Minute), Text: "container db runs, and the pod is Ready"},
					},
					Do: "check whether the kubelet runs",
				}}
				return f
			}},
		{"not true in two ways, of which one is likely", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeReadinessNotReported},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionFalse))
				f.Untrue = []explain.Untruth{
					{Kind: "ForeignWriter", Text: "\"bad-controller\" has set Ready to False", Since: ago(time.Minute), Do: "stop it"},
					{Kind: "StuckTerminating", Text: "it should be gone", Certainty: "likely", Since: now.Add(time.Hour)},
				}
				return f
			}},
		{"on its way", explain.StateReady, nil,
			func() explain.Facts {
				f := facts(with(v1.PodRunning, running(time.Hour), v1.ConditionTrue))
				f.Delivery = &podstatus.Delivery{Version: 2, Accepted: 1, Since: ago(time.Second)}
				return f
			}},
	}
}
