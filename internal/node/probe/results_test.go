package probe

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/runtime"
)

var (
	runs      = v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	waits     = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
	succeeds  = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	fails     = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}}
	anyProbe  = &v1.Probe{}
	always    = v1.ContainerRestartPolicyAlways
	yes, no   = true, false
	reported  = v1.ContainerStatus{Started: &yes, Ready: true}
	unstarted = v1.ContainerStatus{Started: &no}
)

func TestQ9ToQ11_StartedAndReadyOfARunningContainer(t *testing.T) {
	for _, c := range []struct {
		story              string
		startup, readiness *v1.Probe
		reported           v1.ContainerStatus
		found              func(results) results
		started, ready     bool
	}{
		{story: "no probes", started: true, ready: true},
		{story: "no probes, whatever was reported", reported: unstarted, started: true, ready: true},
		{story: "readiness not probed yet", readiness: anyProbe, started: true},
		{story: "startup not probed yet", startup: anyProbe},
		{story: "startup passed, no readiness probe", startup: anyProbe, found: decide(runtime.StartupProbe, success), started: true, ready: true},
		{story: "startup failed", startup: anyProbe, found: decide(runtime.StartupProbe, failure)},
		{story: "startup passed, readiness not probed yet", startup: anyProbe, readiness: anyProbe, found: decide(runtime.StartupProbe, success), started: true},
		{story: "readiness passed", readiness: anyProbe, found: decide(runtime.ReadinessProbe, success), started: true, ready: true},
		{story: "readiness failed", readiness: anyProbe, found: decide(runtime.ReadinessProbe, failure), started: true},
		{story: "#136047: ready, not started", startup: anyProbe, readiness: anyProbe, found: decide(runtime.ReadinessProbe, success)},
		{story: "#100277: reported before", startup: anyProbe, readiness: anyProbe, reported: reported, started: true, ready: true},
		{story: "reported before, failed since", readiness: anyProbe, reported: reported, found: decide(runtime.ReadinessProbe, failure), started: true},
		{story: "reported ready but not started", startup: anyProbe, readiness: anyProbe, reported: v1.ContainerStatus{Ready: true, Started: &no}},
		{story: "reported ready but not started, started since", startup: anyProbe, readiness: anyProbe, reported: v1.ContainerStatus{Ready: true, Started: &no}, found: decide(runtime.StartupProbe, success), started: true},
		{story: "liveness says nothing about it", found: decide(runtime.LivenessProbe, failure), started: true, ready: true},
	} {
		t.Run(c.story, func(t *testing.T) {
			r := firstResults(&v1.Container{StartupProbe: c.startup, ReadinessProbe: c.readiness}, &c.reported)
			if c.found != nil {
				r = c.found(r)
			}
			if r.started() != c.started || r.ready() != c.ready {
				t.Errorf("got started=%v ready=%v, want started=%v ready=%v", r.started(), r.ready(), c.started, c.ready)
			}
		})
	}
}

func decide(kind runtime.ProbeKind, decided result) func(results) results {
	return func(r results) results { return r.with(kind, decided) }
}

func TestFillSetsEveryKindOfContainer(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{
			{Name: "init"},
			{Name: "sidecar", RestartPolicy: &always, StartupProbe: anyProbe},
		},
		Containers: []v1.Container{{Name: "plain"}, {Name: "probed", ReadinessProbe: anyProbe}},
	}}
	for _, c := range []struct {
		story          string
		init           bool
		status         v1.ContainerStatus
		started, ready bool
	}{
		{"Q12: init container at work", true, v1.ContainerStatus{Name: "init", State: runs}, true, false},
		{"Q12: init container done", true, v1.ContainerStatus{Name: "init", State: succeeds}, false, true},
		{"Q12: init container failed", true, v1.ContainerStatus{Name: "init", State: fails, Ready: true}, false, false},
		{"Q12: init container to come", true, v1.ContainerStatus{Name: "init", State: waits}, false, false},
		{"sidecar not started", true, v1.ContainerStatus{Name: "sidecar", State: runs}, false, false},
		{"#136910: sidecar reported as started", true, v1.ContainerStatus{Name: "sidecar", State: runs, Started: &yes}, true, true},
		{"sidecar done", true, v1.ContainerStatus{Name: "sidecar", State: succeeds}, false, false},
		{"container without probes", false, v1.ContainerStatus{Name: "plain", State: runs}, true, true},
		{"container in back-off", false, v1.ContainerStatus{Name: "plain", State: waits, Started: &yes, Ready: true}, false, false},
		{"Q7: container that ended", false, v1.ContainerStatus{Name: "probed", State: fails, Started: &yes, Ready: true}, false, false},
		{"container that waits for readiness", false, v1.ContainerStatus{Name: "probed", State: runs}, true, false},
	} {
		t.Run(c.story, func(t *testing.T) {
			var status v1.PodStatus
			list := &status.ContainerStatuses
			if c.init {
				list = &status.InitContainerStatuses
			}
			*list = []v1.ContainerStatus{c.status}
			fill(pod, &status, firstResults)
			got := (*list)[0]
			if got.Started == nil || *got.Started != c.started || got.Ready != c.ready {
				t.Errorf("got %s, want started=%v ready=%v", describe(&got), c.started, c.ready)
			}
		})
	}
}

func TestFillLeavesAContainerAloneThatIsNotInTheSpec(t *testing.T) {
	stranger := v1.ContainerStatus{Name: "stranger", State: runs, Ready: true}
	status := v1.PodStatus{
		ContainerStatuses:     []v1.ContainerStatus{stranger},
		InitContainerStatuses: []v1.ContainerStatus{stranger},
	}
	fill(&v1.Pod{}, &status, firstResults)
	for _, got := range []v1.ContainerStatus{status.ContainerStatuses[0], status.InitContainerStatuses[0]} {
		if got.Started != nil || !got.Ready {
			t.Errorf("got %s, want it as it was: ready, and started unset", describe(&got))
		}
	}
}

// TestReadyImpliesStarted is the invariant of #136047, whatever is reported and found.
func TestReadyImpliesStarted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		probe := rapid.SampledFrom([]*v1.Probe{nil, anyProbe})
		flag := rapid.SampledFrom([]*bool{nil, &yes, &no})
		spec := &v1.Container{StartupProbe: probe.Draw(t, "startup probe"), ReadinessProbe: probe.Draw(t, "readiness probe")}
		r := firstResults(spec, &v1.ContainerStatus{Started: flag.Draw(t, "started"), Ready: rapid.Bool().Draw(t, "ready")})
		for range rapid.IntRange(0, 10).Draw(t, "decisions") {
			kind := rapid.SampledFrom([]runtime.ProbeKind{runtime.StartupProbe, runtime.ReadinessProbe, runtime.LivenessProbe}).Draw(t, "kind")
			r = r.with(kind, rapid.SampledFrom([]result{unknown, success, failure}).Draw(t, "decided"))
		}
		if r.ready() && !r.started() {
			t.Fatalf("ready without having started: %+v", r)
		}
		if r.ready() && spec.ReadinessProbe != nil && r.readiness != success {
			t.Fatalf("ready against its readiness probe: %+v", r)
		}
	})
}
