package oracle

import (
	"context"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	runtimeutil "k8s.io/kubernetes/pkg/kubelet/kuberuntime/util"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	statusutil "k8s.io/kubernetes/pkg/util/pod"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// Where upstream exports a rule, it is compared with ours as a function: the same pods and
// statuses as in the programs, drawn directly, some thousands of each (see TestMain).

// drawPod draws a pod of the simulated node in the middle of its life.
func drawPod(t *rapid.T) *nodePod {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{
		"always", "onfailure", "never", "init", "sidecar", "app", "debug", "rule", "restart-all", "own-never", "gate", "static", "gen=3",
	}), 0, 8).Draw(t, "pod")
	p := newNodePod(Step{Op: "pod", Pod: "a", Args: words}, 1)
	p.mayRun = rapid.Bool().Draw(t, "may run")
	for range rapid.IntRange(0, 8).Draw(t, "events") {
		c := rapid.SampledFrom(p.containers).Draw(t, "container")
		switch rapid.IntRange(0, 2).Draw(t, "event") {
		case 0:
			p.run(c, Step{Args: []string{c.name, rapid.SampledFrom([]string{"", "unready", "unstarted", "silent"}).Draw(t, "how")}})
		case 1:
			c.exit(Step{Args: []string{c.name, rapid.SampledFrom([]string{"0", "1", "42", "43"}).Draw(t, "code")}})
		case 2:
			c.wait(Step{Args: []string{c.name}})
		}
	}
	return p
}

// drawReport draws a report on the pod, odd ones among them.
func drawReport(t *rapid.T, p *nodePod) v1.PodStatus {
	words := rapid.SliceOfN(rapid.SampledFrom(oddWords), 0, 3).Draw(t, "report")
	if rapid.Bool().Draw(t, "forced phase") {
		words = append(words, "phase="+string(drawPhase(t)))
	}
	var others []v1.PodCondition
	if rapid.Bool().Draw(t, "gate condition") {
		status := rapid.SampledFrom([]v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown}).Draw(t, "gate")
		others = append(others, v1.PodCondition{Type: gateType, Status: status})
	}
	return p.report(Step{Op: "report", Pod: "a", Args: words}, others, nil)
}

func drawPhase(t *rapid.T) v1.PodPhase {
	return rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown}).Draw(t, "phase")
}

// wantSame fails if a rule of ours says something else than the kubelet's.
func wantSame(t *rapid.T, rule string, kubelet, statusd any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(kubelet, statusd) {
		t.Fatalf("%s: the kubelet says\n%+v\nstatusd says\n%+v", rule, kubelet, statusd)
	}
}

func TestFunctions_Conditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		old := drawReport(t, p)
		status := drawReport(t, p)
		all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
		if rapid.IntRange(0, 9).Draw(t, "no statuses at all") == 0 {
			all = nil
		}
		wantSame(t, "C5, C6, C7 ContainersReady",
			kubestatus.GenerateContainersReadyCondition(p.spec, &old, all, status.Phase),
			podstatus.ContainersReady(p.spec, all, status.Phase))
		wantSame(t, "C8, C9 Ready",
			kubestatus.GeneratePodReadyCondition(p.spec, &old, status.Conditions, all, status.Phase),
			podstatus.Ready(p.spec, status.Conditions, all, status.Phase))
		wantSame(t, "C10, C11, C12 Initialized",
			kubestatus.GeneratePodInitializedCondition(p.spec, &old, all, status.Phase),
			podstatus.Initialized(p.spec, &old, all, status.Phase))
		wantSame(t, "C14 AllContainersRestarting",
			kubestatus.GenerateAllContainersRestartingCondition(p.spec, runtimeStatus(all), &old, status.Phase),
			podrules.AllContainersRestarting(p.spec, &old, held(all), status.Phase))
	})
}

func TestFunctions_ReadyToStartContainers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t).spec
		pod.Spec.HostNetwork = rapid.Bool().Draw(t, "host network")
		var sandboxes kubecontainer.PodStatus
		for range rapid.IntRange(0, 2).Draw(t, "sandboxes") {
			sandboxes.SandboxStatuses = append(sandboxes.SandboxStatuses, &runtimeapi.PodSandboxStatus{
				Metadata: &runtimeapi.PodSandboxMetadata{},
				State:    rapid.SampledFrom([]runtimeapi.PodSandboxState{runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.PodSandboxState_SANDBOX_NOTREADY}).Draw(t, "state"),
				Network:  &runtimeapi.PodSandboxNetworkStatus{Ip: rapid.SampledFrom([]string{"", "10.0.0.1"}).Draw(t, "ip")},
			})
		}
		needsNew, _, _ := runtimeutil.PodSandboxChanged(pod, &sandboxes)
		wantSame(t, "C13 PodReadyToStartContainers",
			kubestatus.GeneratePodReadyToStartContainersCondition(pod, &pod.Status, &sandboxes),
			podrules.ReadyToStartContainers(pod, needsNew))
	})
}

// held are the containers that a runtime knows of: those that run or have ended.
func held(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	return slices.DeleteFunc(slices.Clone(statuses), func(s v1.ContainerStatus) bool {
		return s.State.Running == nil && s.State.Terminated == nil
	})
}

// runtimeStatus is the same as the kubelet's runtime reports it.
func runtimeStatus(statuses []v1.ContainerStatus) *kubecontainer.PodStatus {
	pod := &kubecontainer.PodStatus{}
	for _, s := range held(statuses) {
		status := &kubecontainer.Status{Name: s.Name, State: kubecontainer.ContainerStateRunning}
		if s.State.Terminated != nil {
			status.State, status.ExitCode = kubecontainer.ContainerStateExited, int(s.State.Terminated.ExitCode)
		}
		pod.ContainerStatuses = append(pod.ContainerStatuses, status)
		pod.ActiveContainerStatuses = append(pod.ActiveContainerStatuses, status)
	}
	return pod
}

// C16: the kubelet looks at the regular containers alone, which is the wanted difference. Shown
// these alone statusd says the same, and shown all of them too, where the others do not count.
func TestFunctions_ReadinessReconcile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		pod := p.spec.DeepCopy()
		pod.Status = drawReport(t, p)
		theirs := kubestatus.NeedToReconcilePodReadiness(pod)
		regular := pod.Status
		regular.InitContainerStatuses = nil
		wantSame(t, "C16 readiness reconcile, regular containers", theirs, podrules.NeedsReadinessReconcile(pod, &regular))
		if !kubetypes.HasRestartableInitContainer(pod) && pod.Status.ContainerStatuses != nil {
			wantSame(t, "C16 readiness reconcile", theirs, podrules.NeedsReadinessReconcile(pod, &pod.Status))
		}
	})
}

func TestFunctions_Restarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t).spec
		for i := range pod.Spec.Containers {
			drawRestartRules(t, &pod.Spec.Containers[i])
		}
		wantSame(t, "T2 could restart all", podutil.AllContainersCouldRestart(&pod.Spec), podrules.CouldRestartAll(pod))
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			wantSame(t, "T6 sidecar", podutil.IsRestartableInitContainer(&c), podstatus.IsSidecar(&c))
			for _, code := range []int32{0, 1, 42, 43} {
				wantSame(t, "T5 should restart", podutil.ContainerShouldRestart(c, pod.Spec, code), podstatus.ShouldRestart(pod, &c, code))
			}
		}
	})
}

// drawRestartRules gives a container a policy and rules of its own, or takes them away.
func drawRestartRules(t *rapid.T, c *v1.Container) {
	c.RestartPolicy = rapid.SampledFrom([]*v1.ContainerRestartPolicy{
		nil, new(v1.ContainerRestartPolicyAlways), new(v1.ContainerRestartPolicyOnFailure), new(v1.ContainerRestartPolicyNever),
	}).Draw(t, "own policy")
	c.RestartPolicyRules = nil
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		rule := v1.ContainerRestartRule{
			Action: rapid.SampledFrom([]v1.ContainerRestartRuleAction{v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers}).Draw(t, "action"),
		}
		if rapid.Bool().Draw(t, "on exit codes") {
			rule.ExitCodes = &v1.ContainerRestartRuleOnExitCodes{
				Operator: rapid.SampledFrom([]v1.ContainerRestartRuleOnExitCodesOperator{v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn}).Draw(t, "operator"),
				Values:   rapid.SliceOfN(rapid.SampledFrom([]int32{0, 1, 42, 43}), 0, 2).Draw(t, "codes"),
			}
		}
		c.RestartPolicyRules = append(c.RestartPolicyRules, rule)
	}
}

func TestFunctions_Sources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := &v1.Pod{}
		pod.Annotations = rapid.MapOfN(
			rapid.SampledFrom([]string{kubetypes.ConfigSourceAnnotationKey, kubetypes.ConfigMirrorAnnotationKey, kubetypes.ConfigHashAnnotationKey}),
			rapid.SampledFrom([]string{"", kubetypes.FileSource, kubetypes.HTTPSource, kubetypes.ApiserverSource, "hash"}),
			0, 3).Draw(t, "annotations")
		// The kubelet's sources correct the annotation of pods of the API, mirrors included.
		wantSame(t, "static", kubetypes.IsStaticPod(pod) && !kubetypes.IsMirrorPod(pod), podstatus.IsStatic(pod))
		wantSame(t, "mirror", kubetypes.IsMirrorPod(pod), podstatus.IsMirror(pod))
	})
}

func TestFunctions_Lookups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		status := drawReport(t, p)
		wantSame(t, "terminal phase", podutil.IsPodPhaseTerminal(status.Phase), podstatus.IsTerminal(status.Phase))
		for _, kind := range []v1.PodConditionType{v1.PodReady, v1.PodInitialized, v1.DisruptionTarget, foreignType, gateType} {
			_, theirs := podutil.GetPodConditionFromList(status.Conditions, kind)
			if ours := podstatus.FindCondition(status.Conditions, kind); ours != theirs {
				t.Fatalf("condition %s: the kubelet finds %p, statusd %p, of two the first is wanted", kind, theirs, ours)
			}
		}
	})
}

// N4: names that the spec does not know are left in any order by the kubelet, and by name
// by statusd.
func TestFunctions_InitOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		status := drawReport(t, p)
		theirs := podrules.Normalize(p.spec, &status).InitContainerStatuses
		theirs = rapid.Permutation(theirs).Draw(t, "order")
		kubetypes.SortInitContainerStatuses(p.spec, theirs)
		wantSame(t, "N4 init order", theirs, podrules.Normalize(p.spec, &status).InitContainerStatuses)
	})
}

func TestFunctions_Ownership(t *testing.T) {
	for _, kind := range []v1.PodConditionType{
		v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodResizeInProgress, v1.PodResizePending,
		v1.PodReadyToStartContainers, v1.AllContainersRestarting, v1.DisruptionTarget, gateType, foreignType, "",
	} {
		if got, want := podstatus.IsOwned(kind), kubetypes.PodConditionByKubelet(kind); got != want {
			t.Errorf("C1: %q is owned: statusd says %v, the kubelet %v", kind, got, want)
		}
		if got, want := podrules.IsShared(kind), kubetypes.PodConditionSharedByKubelet(kind); got != want {
			t.Errorf("C2: %q is shared: statusd says %v, the kubelet %v", kind, got, want)
		}
	}
}

// P1 to P4: the two patches may be written differently; what the server makes of them is
// the same, but for the order of conditions.
func TestFunctions_Patch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPod(t)
		base, desired := drawReport(t, p), drawReport(t, p)
		for _, status := range []*v1.PodStatus{&base, &desired} {
			// As after Merge: what is not the node's is the same on both sides.
			status.Conditions = slices.DeleteFunc(status.Conditions, func(c v1.PodCondition) bool { return !podstatus.IsOwned(c.Type) })
			status.Conditions = append(status.Conditions, v1.PodCondition{Type: foreignType, Status: v1.ConditionTrue})
			status.ResourceClaimStatuses, status.QOSClass = nil, v1.PodQOSBestEffort
			if hasDuplicate(status.Conditions) {
				return // E7
			}
			*status = podrules.Normalize(p.spec, status)
		}
		k := newKubelet(func(types.UID) bool { return false })
		pod := p.spec.DeepCopy()
		pod.Status = base
		k.api.create(pod)
		_, theirs, unchanged, err := statusutil.PatchPodStatus(context.Background(), clientset{kubelet: k}, namespace, pod.Name, pod.UID, base, desired)
		if err != nil {
			t.Fatalf("the kubelet's patch: %v", err)
		}
		ours, err := podrules.Patch(pod.UID, &base, &desired)
		if err != nil {
			t.Fatalf("statusd's patch: %v", err)
		}
		if unchanged && ours != nil {
			t.Fatalf("P2: the kubelet has nothing to send, statusd has %s", ours)
		}
		wantSame(t, "P4 patched status\n"+string(theirs)+"\n"+string(ours), applied(t, &base, theirs), applied(t, &base, ours))
	})
}

// applied is the status that the server makes of a patch, conditions sorted.
func applied(t *rapid.T, base *v1.PodStatus, patch []byte) *v1.PodStatus {
	status := base.DeepCopy()
	if patch != nil {
		var err error
		if status, err = patchedStatus(mustMarshal(base), patch); err != nil {
			t.Fatalf("patch %s: %v", patch, err)
		}
	}
	sortConditions(status.Conditions)
	return status
}
