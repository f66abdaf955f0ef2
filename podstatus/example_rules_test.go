package podstatus_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// server is a pod of one container and a sidecar, of which the first is not ready.
func server() (*v1.Pod, []v1.ContainerStatus) {
	always := v1.ContainerRestartPolicyAlways
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "proxy", RestartPolicy: &always}},
		Containers:     []v1.Container{{Name: "main"}},
	}}
	runs, started := v1.ContainerState{Running: &v1.ContainerStateRunning{}}, true
	return pod, []v1.ContainerStatus{
		{Name: "proxy", State: runs, Ready: true, Started: &started},
		{Name: "main", State: runs, Started: &started},
	}
}

func ExamplePhase() {
	pod, statuses := server()
	fmt.Println(podstatus.Phase(pod, statuses, false, true))
	// Output: Running
}

func ExampleReady() {
	pod, statuses := server()
	statuses[1].Ready = true
	pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/in-rotation"}}
	ready := podstatus.Ready(pod, nil, statuses, v1.PodRunning)
	fmt.Println(ready.Status, ready.Reason)
	// Output: False ReadinessGatesNotReady
}

func ExampleContainersReady() {
	pod, statuses := server()
	ready := podstatus.ContainersReady(pod, statuses, v1.PodRunning)
	fmt.Println(ready.Status, ready.Message)
	// Output: False containers with unready status: [main]
}

func ExampleInitialized() {
	pod, statuses := server()
	fmt.Println(podstatus.Initialized(pod, nil, statuses, v1.PodRunning).Status)
	// Output: True
}

func ExampleHasInitialized() {
	pod, statuses := server()
	fmt.Println(podstatus.HasInitialized(pod, &v1.PodStatus{InitContainerStatuses: statuses[:1]}))
	// Output: true
}

func ExampleFindCondition() {
	status := v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	fmt.Println(podstatus.FindCondition(status.Conditions, v1.PodReady).Status)
	// Output: True
}

func ExampleFindContainer() {
	pod, _ := server()
	fmt.Println(podstatus.FindContainer(pod, "proxy").Name, podstatus.FindContainer(pod, "other") == nil)
	// Output: proxy true
}

func ExampleFindContainerStatus() {
	_, statuses := server()
	status := &v1.PodStatus{InitContainerStatuses: statuses[:1], ContainerStatuses: statuses[1:]}
	fmt.Println(podstatus.FindContainerStatus(status, "main").Ready)
	// Output: false
}

func ExampleIsSidecar() {
	pod, _ := server()
	fmt.Println(podstatus.IsSidecar(&pod.Spec.InitContainers[0]))
	// Output: true
}

func ExampleIsStarted() {
	_, statuses := server()
	fmt.Println(podstatus.IsStarted(&statuses[0]), podstatus.IsStarted(nil))
	// Output: true false
}

func ExampleIsTerminal() {
	fmt.Println(podstatus.IsTerminal(v1.PodFailed), podstatus.IsTerminal(v1.PodRunning))
	// Output: true false
}

func ExampleIsStatic() {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{podstatus.SourceAnnotation: podstatus.SourceFile}}}
	fmt.Println(podstatus.IsStatic(pod))
	pod.ResourceVersion = "7" // the API server has stored this one: anyone may set the annotation
	fmt.Println(podstatus.IsStatic(pod))
	// Output:
	// true
	// false
}

func ExampleIsMirror() {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.MirrorPodAnnotationKey: "hash"}}}
	fmt.Println(podstatus.IsMirror(pod))
	// Output: true
}

func ExampleIsCritical() {
	priority := int32(2_000_001_000) // system-node-critical
	fmt.Println(podstatus.IsCritical(&v1.Pod{Spec: v1.PodSpec{Priority: &priority}}))
	// Output: true
}

func ExampleIsOwned() {
	fmt.Println(podstatus.IsOwned(v1.PodReady), podstatus.IsOwned("example.com/in-rotation"))
	// Output: true false
}

func ExampleShouldRestart() {
	pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyOnFailure, Containers: []v1.Container{{Name: "main"}}}}
	main := &pod.Spec.Containers[0]
	fmt.Println(podstatus.ShouldRestart(pod, main, 0), podstatus.ShouldRestart(pod, main, 1))
	// Output: false true
}

func ExampleLastExit() {
	status := &v1.ContainerStatus{
		State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3}},
	}
	fmt.Println(podstatus.LastExit(status).ExitCode)
	// Output: 3
}

func ExampleQOSClass() {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
	}}}}}
	fmt.Println(podstatus.QOSClass(pod))
	// Output: Burstable
}

func ExampleDeadline() {
	seconds := int64(60)
	pod := &v1.Pod{Spec: v1.PodSpec{ActiveDeadlineSeconds: &seconds}}
	start := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	fmt.Println(podstatus.Deadline(pod, &start).Format(time.TimeOnly))
	// Output: 12:01:00
}

func ExampleAllocationOf() {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
	}}}}}
	main := podstatus.AllocationOf(pod).Containers["main"]
	fmt.Println(main.Requests.Cpu())
	// Output: 100m
}

func ExampleResizeConditionsOf() {
	resize := podstatus.ResizeConditionsOf([]v1.PodCondition{
		{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonDeferred},
		{Type: v1.PodReady, Status: v1.ConditionTrue},
	})
	fmt.Println(resize.Pending.Reason, resize.InProgress == nil)
	// Output: Deferred true
}
