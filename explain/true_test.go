package explain_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/explain"
)

// A failing postStart hook kills its container: the hook is the cause, not the signal that the node sent.
func TestPostStartHook_IsTheCauseOfTheKill(t *testing.T) {
	f := facts(with(v1.PodRunning, waiting("CrashLoopBackOff", "back-off"), v1.ConditionFalse), func(p *v1.Pod) {
		p.Status.ContainerStatuses[0].RestartCount = 3
		p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 143, "")
	})
	f.Warnings = []explain.Warning{{Reason: "FailedPostStartHook", Container: "db", Last: ago(21 * time.Second),
		Message: `PostStartHook failed: command 'sh -c ...' exited with 3: "cannot register\n"`}}
	got := explain.Pod(f).Sentence(time.UTC)
	if !strings.Contains(got, "postStart hook failed") || !strings.Contains(got, "cannot register") || strings.Contains(got, "find what asked it to stop") {
		t.Errorf("got %s", got)
	}
	f.Warnings[0].Message = "PostStartHook failed" // by a kubelet, which does not say why
	if got := explain.Pod(f).Sentence(time.UTC); !strings.Contains(got, "its postStart hook failed · exit code 143") {
		t.Errorf("got %s", got)
	}
	f.Warnings[0].Message = `PostStartHook failed: exec ["register"] exited with 3: "cannot register with password=hunter2"`
	if got := explain.Pod(f).Sentence(time.UTC); !strings.Contains(got, `its postStart hook failed: exec ["register"] exited with 3: "cannot register`) || strings.Contains(got, "hunter2") {
		t.Errorf("got %s", got)
	}
	f.Warnings[0].Last = ago(5 * time.Minute) // of an earlier run
	if got := explain.Pod(f).Sentence(time.UTC); strings.Contains(got, "cannot register") {
		t.Errorf("the hook of an earlier run is named, and the container has none now: %s", got)
	}
	f.Pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}} // events are limited in number
	if got := explain.Pod(f).Sentence(time.UTC); !strings.Contains(got, "when its postStart hook fails, as it did before") {
		t.Errorf("got %s", got)
	}
}

// unrelated are warnings that do not explain a container that is created now.
var unrelated = []explain.Warning{
	{Reason: "FailedScheduling", Message: "0/3 nodes are available: 3 Insufficient cpu.", Last: ago(9 * time.Minute)},
	{Reason: "FailedScheduling", Message: "0/3 nodes are available: 3 Insufficient cpu.", Last: ago(10 * time.Second)},
	{Reason: "AlertFiring", Message: "PodStartSlow (warning): Pod d/p has been starting for more than 2 minutes.", Last: ago(time.Second)},
	{Reason: "AlertResolved", Message: "KubePodNotReady (warning)", Last: ago(time.Second)},
	{Reason: "BackOff", Container: "db", Message: "Back-off restarting failed container app in pod g", Last: ago(time.Second)},
	{Reason: "Unhealthy", Container: "db", Message: "Liveness probe failed: no", Last: ago(time.Second)},
	{Reason: "FailedMount", Message: "MountVolume.SetUp failed: old news", Last: ago(9 * time.Minute)},
	{Reason: "FailedPostStartHook", Container: "db", Message: "hook failed: old news", Last: ago(8 * time.Minute)},
	{Reason: "NodeNotReady", Message: "Node is not ready", Last: ago(time.Second)},
	{Reason: "Unknown", Message: "whatever", Last: ago(time.Second)},
}

// For every state, a Warning that is over, of an earlier run, about something else or statusd's own alert changes nothing.
func TestIrrelevantWarnings_AreNotInTheSentence(t *testing.T) {
	scheduled := func(p *v1.Pod) {
		c := condition(v1.PodScheduled, v1.ConditionTrue, "", "")
		c.LastTransitionTime = metav1.Time{Time: ago(2 * time.Minute)}
		p.Status.Conditions = append(p.Status.Conditions, c)
	}
	for name, f := range map[string]explain.Facts{
		"creating": facts(with(v1.PodPending, waiting("ContainerCreating", ""), v1.ConditionFalse), scheduled),
		"sandbox": facts(with(v1.PodPending, waiting("ContainerCreating", ""), v1.ConditionFalse), scheduled, func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodReadyToStartContainers, v1.ConditionFalse, "", ""))
		}),
		"ready":      facts(with(v1.PodRunning, running(time.Minute), v1.ConditionTrue), scheduled),
		"crash loop": facts(with(v1.PodRunning, waiting("CrashLoopBackOff", ""), v1.ConditionFalse), scheduled, func(p *v1.Pod) { p.Status.ContainerStatuses[0].LastTerminationState = ended("Error", 1, "") }),
		"image":      facts(with(v1.PodPending, waiting("ErrImagePull", "403 Forbidden"), v1.ConditionFalse), scheduled),
		"failed":     facts(with(v1.PodFailed, ended("Error", 1, ""), v1.ConditionFalse), scheduled),
		"deleted":    facts(with(v1.PodRunning, running(time.Minute), v1.ConditionTrue), scheduled, deleted(30, 20*time.Second)),
	} {
		t.Run(name, func(t *testing.T) {
			plain := explain.Pod(f).Sentence(time.UTC)
			rapid.Check(t, func(t *rapid.T) {
				f.Warnings = rapid.SliceOfN(rapid.SampledFrom(unrelated), 1, 4).Draw(t, "warnings")
				if got := explain.Pod(f).Sentence(time.UTC); got != plain {
					t.Fatalf("%v changes the sentence\nfrom %s\nto   %s", f.Warnings, plain, got)
				}
			})
		})
	}
}

// What does explain it is said.
func TestRelevantWarning_IsTheCause(t *testing.T) {
	f := facts(with(v1.PodPending, waiting("ContainerCreating", ""), v1.ConditionFalse), func(p *v1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, condition(v1.PodScheduled, v1.ConditionTrue, "", ""))
	})
	f.Warnings = append([]explain.Warning{{Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "conf": configmap "conf" not found`, Last: ago(5 * time.Second)}}, unrelated...)
	e := explain.Pod(f)
	if got := e.Roots()[0]; got.Code != explain.CodeVolumesNotReady || !strings.Contains(got.Text, `configmap "conf" not found`) {
		t.Errorf("got %+v", got)
	}
	f.Warnings = []explain.Warning{{Reason: "Failed", Container: "db", Message: `Failed to pull image "x": 403 Forbidden`, Last: ago(5 * time.Second)}}
	if got := explain.Pod(f).Roots()[0]; got.Code != explain.CodeImage {
		t.Errorf("got %+v", got)
	}
}
