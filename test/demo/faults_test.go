package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/test/campaign"
)

const here = "198.51.100.1"

// statusOf is a pod of one container, as the API shows it.
func statusOf(name, life string, phase v1.PodPhase, ready bool, state v1.ContainerState) v1.Pod {
	condition := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse}
	if ready {
		condition.Status = v1.ConditionTrue
	}
	return v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{lifeLabel: life}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c0"}}},
		Status: v1.PodStatus{
			Phase: phase, HostIP: here, Conditions: []v1.PodCondition{condition},
			ContainerStatuses: []v1.ContainerStatus{{Name: "c0", ContainerID: "process://" + name, State: state}},
		},
	}
}

func TestCompare_DifferencesFromTheTruth_AreFound(t *testing.T) {
	runs := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	waits := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	is := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	elsewhere := statusOf("a", lasting, v1.PodRunning, true, runs)
	elsewhere.Status.HostIP = "198.51.100.2"
	cases := map[string]struct {
		pod         v1.Pod
		lives, done bool
		damaged     bool
		want        string // empty if all is true
	}{
		"runs":                   {pod: statusOf("a", lasting, v1.PodRunning, true, runs), lives: true},
		"waits":                  {pod: statusOf("a", crashing, v1.PodRunning, false, waits)},
		"has no process":         {pod: statusOf("a", lasting, v1.PodRunning, true, runs), want: "is Running and has no process"},
		"has a process":          {pod: statusOf("a", crashing, v1.PodRunning, false, waits), lives: true, want: "no pod shows it"},
		"ready and waits":        {pod: statusOf("a", lasting, v1.PodRunning, true, waits), want: "Ready is true"},
		"runs and is not ready":  {pod: statusOf("a", lasting, v1.PodRunning, false, runs), lives: true, want: "Ready is false"},
		"runs and is pending":    {pod: statusOf("a", lasting, v1.PodPending, true, runs), lives: true, want: "phase is Pending"},
		"another address":        {pod: elsewhere, lives: true, want: "hostIP"},
		"rejected":               {pod: statusOf("a", lasting, v1.PodFailed, false, is), want: "is to run on"},
		"job is done":            {pod: statusOf("a", job, v1.PodSucceeded, false, is), done: true},
		"job was killed":         {pod: statusOf("a", job, v1.PodFailed, false, is)},
		"job did not end well":   {pod: statusOf("a", job, v1.PodSucceeded, false, is), want: "phase is Succeeded"},
		"job did not fail":       {pod: statusOf("a", job, v1.PodFailed, false, is), done: true, want: "phase is Failed"},
		"job is said to go on":   {pod: statusOf("a", job, v1.PodRunning, false, is), done: true, want: "the job is done"},
		"end in damaged record":  {pod: statusOf("a", job, v1.PodFailed, false, is), done: true, damaged: true},
		"failing job failed":     {pod: statusOf("a", failing, v1.PodFailed, false, is)},
		"failing job ended well": {pod: statusOf("a", failing, v1.PodSucceeded, false, is), want: "phase is Succeeded"},
		"another pod":            {pod: statusOf("b", crashing, v1.PodRunning, false, waits), want: "a: is not there"},
	}
	for name, c := range cases {
		truth := truth{names: []string{"a"}, living: map[string]int{}, done: map[string]bool{"a": c.done}, damaged: map[string]bool{"a": c.damaged}, address: here}
		if c.lives {
			truth.living["process://a"] = 1
		}
		got := truth.compare([]v1.Pod{c.pod})
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestCompareNode(t *testing.T) {
	node := &v1.Node{Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Address: here}}, NodeInfo: v1.NodeSystemInfo{BootID: "now"}}}
	if got := (&truth{address: here, bootID: "now"}).compareNode(node); len(got) > 0 {
		t.Errorf("got %q for a true Node", got)
	}
	if got := (&truth{address: "198.51.100.9", bootID: "later"}).compareNode(node); len(got) != 2 {
		t.Errorf("got %q, want the address and the boot ID", got)
	}
}

// The same seed gives the same faults, and each kind comes.
func TestFaultsRepeat(t *testing.T) {
	kinds := map[string]bool{}
	for n := range 200 {
		first, numbers := nthFault(7, n)
		second, again := nthFault(7, n)
		if first.name != second.name || numbers.Uint64() != again.Uint64() {
			t.Fatalf("fault %d differs", n)
		}
		kinds[first.name] = true
	}
	if len(kinds) != len(faultKinds) {
		t.Errorf("only %v of %d kinds in 200 faults", kinds, len(faultKinds))
	}
}

func TestDamageChangesOneBitOrTheEnd(t *testing.T) {
	file, whole := filepath.Join(t.TempDir(), "record"), []byte("0123456789")
	for number := range uint64(100) {
		for _, cut := range []bool{true, false} {
			if err := os.WriteFile(file, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			what, err := damage(file, cut, number<<58|number)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil || bytes.Equal(got, whole) || (!cut && len(got) != len(whole)) {
				t.Fatalf("%s: got %q, %v", what, got, err)
			}
		}
	}
	if what, err := damage(file+".gone", true, 0); err != nil || what != "nothing damaged" {
		t.Errorf("got %q, %v for a file that is gone", what, err)
	}
}

func TestReportCountsAndNamesWhatWasWrong(t *testing.T) {
	r := newFaultReport(faultOptions{seed: 7, pods: 3})
	r.begin(0, "reboot")
	r.started(nil)
	r.trueAfter(time.Second, "after the boot", nil)
	if r.end() != "" {
		t.Errorf("got %q for a fault that went well", r.end())
	}
	r.begin(1, "reboot")
	r.started(nil)
	r.trueAfter(11*time.Second, "after the boot", []string{"a: is not there"})
	for _, want := range []string{"seed 7, fault 1, reboot: after the boot", "a: is not there"} {
		if !strings.Contains(r.end(), want) {
			t.Errorf("got %q, want %q in it", r.end(), want)
		}
	}
	text := strings.Join(strings.Fields(r.String()), " ")
	if want := "reboot 2 2 of 2 1 1.00, 11.00, 11.00 (2 times) all 2 2 of 2 1"; !strings.Contains(text, want) {
		t.Errorf("got %q, want %q in it", text, want)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{3, 1, 2, 4}
	var got []float64
	for _, p := range []int{1, 50, 51, 99, 100} {
		got = append(got, campaign.Percentile(values, p))
	}
	if want := []float64{1, 2, 3, 4, 4}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
