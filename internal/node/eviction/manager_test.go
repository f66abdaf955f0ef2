package eviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a node of 1000 MiB with what its pods use.
type machine struct {
	mu      sync.Mutex // guards all below
	pods    []subject
	memory  uint64 // MiB that other things use
	dead    uint64 // MiB of disk that dead pods have left
	stuck   bool   // evicted pods do not end
	broken  error
	evicted []string
	events  []string
}

func (m *machine) read() (Observations, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory, disk := m.memory, m.dead
	for _, s := range m.pods {
		if s.usage != nil {
			memory += s.usage.MemoryBytes / mib
			disk += s.usage.DiskBytes / mib
		}
	}
	return Observations{
		MemoryAvailable: {Available: (1000 - min(memory, 1000)) * mib, Capacity: 1000 * mib},
		NodeFSAvailable: {Available: (1000 - min(disk, 1000)) * mib, Capacity: 1000 * mib},
	}, m.broken
}

func (m *machine) Event(pod *v1.Pod, _, _, reason, _ string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, pod.Name+" "+reason)
}

func (m *machine) evict(pod *v1.Pod, _ string, grace time.Duration) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evicted = append(m.evicted, fmt.Sprintf("%s %s", pod.Name, grace))
	ended := make(chan struct{})
	if m.stuck {
		return ended
	}
	time.AfterFunc(grace, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.pods = slices.DeleteFunc(m.pods, func(s subject) bool { return s.pod == pod })
		close(ended)
	})
	return ended
}

// set changes the machine while the manager runs.
func (m *machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// list is what was evicted so far.
func (m *machine) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.evicted)
}

// run runs a manager on the machine for a while.
func (m *machine) run(t *testing.T, config Config, change func(*Options), life func(*Manager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		thresholds, err := config.Thresholds()
		if err != nil {
			t.Fatal(err)
		}
		options := Options{
			Thresholds: thresholds, MaxPodGrace: 20 * time.Second, Read: m.read,
			Pods: func() []*v1.Pod {
				m.mu.Lock()
				defer m.mu.Unlock()
				var all []*v1.Pod
				for _, s := range m.pods {
					all = append(all, s.pod)
				}
				return all
			},
			Requests: func(pod *v1.Pod) v1.ResourceList { return pod.Spec.Containers[0].Resources.Requests },
			Usage: func(_ context.Context, pod *v1.Pod) (runtime.Usage, error) {
				m.mu.Lock()
				defer m.mu.Unlock()
				for _, s := range m.pods {
					if s.pod == pod && s.usage != nil {
						return *s.usage, nil
					}
				}
				return runtime.Usage{}, runtime.ErrNotFound
			},
			Evict: m.evict, Recorder: m,
		}
		if change != nil {
			change(&options)
		}
		manager, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- manager.Run(ctx) }()
		life(manager)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

var hundred = Config{Hard: map[string]string{"memory.available": "100Mi", "nodefs.available": "100Mi"}}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestOnePodAtATimeUntilThereIsEnough(t *testing.T) {
	m := &machine{memory: 300, pods: []subject{pod("a", 0, 50, 0), pod("b", 0, 400, 0), pod("c", 0, 100, 0), pod("d", 0, 350, 100)}}
	m.run(t, hundred, nil, func(*Manager) {
		wait(time.Minute)
		if want := []string{"b 1s"}; !slices.Equal(m.list(), want) {
			t.Errorf("evicted %q, want %q and no more", m.list(), want)
		}
		if want := []string{"b Evicted"}; !slices.Equal(m.events, want) {
			t.Errorf("events %q, want %q", m.events, want)
		}
		m.set(func() { m.memory = 600 })
		wait(time.Minute)
		if want := []string{"b 1s", "d 1s"}; !slices.Equal(m.list(), want) {
			t.Errorf("evicted %q, want %q", m.list(), want)
		}
	})
}

func TestASoftThresholdHasItsGraceAndThatOfThePod(t *testing.T) {
	quick, slow := int64(5), int64(300)
	m := &machine{memory: 500, pods: []subject{pod("quick", 0, 150, 0), pod("slow", 0, 250, 0)}}
	m.pods[0].pod.Spec.TerminationGracePeriodSeconds = &quick
	m.pods[1].pod.Spec.TerminationGracePeriodSeconds = &slow
	soft := Config{Soft: map[string]string{"memory.available": "400Mi"}, SoftGracePeriod: map[string]string{"memory.available": "1m"}}
	m.run(t, soft, nil, func(manager *Manager) {
		wait(59 * time.Second)
		if len(m.list()) > 0 {
			t.Errorf("within the grace: evicted %q", m.list())
		}
		if got := manager.Conditions(); !slices.Equal(got, []v1.NodeConditionType{v1.NodeMemoryPressure}) {
			t.Errorf("conditions %v, want MemoryPressure all along", got)
		}
		wait(time.Second)
		if want := []string{"slow 20s"}; !slices.Equal(m.list(), want) {
			t.Errorf("after the grace: evicted %q, want %q", m.list(), want)
		}
		m.set(func() { m.memory = 700 }) // the quick one has to go as well
		wait(5 * time.Minute)
		if want := []string{"slow 20s", "quick 5s"}; !slices.Equal(m.list(), want) {
			t.Errorf("in the end: evicted %q, want %q", m.list(), want)
		}
	})
}

func TestSoftThresholdWithoutBound_HasTheGraceOfThePod(t *testing.T) {
	slow := int64(300)
	m := &machine{memory: 500, pods: []subject{pod("own", 0, 250, 0)}}
	m.pods[0].pod.Spec.TerminationGracePeriodSeconds = &slow
	soft := Config{Soft: map[string]string{"memory.available": "400Mi"}, SoftGracePeriod: map[string]string{"memory.available": "1m"}}
	m.run(t, soft, func(o *Options) { o.MaxPodGrace = 0 }, func(*Manager) {
		wait(time.Minute)
		if want := []string{"own 5m0s"}; !slices.Equal(m.list(), want) {
			t.Errorf("evicted %q, want %q", m.list(), want)
		}
	})
}

func TestDeadPodsAreReclaimedFirst(t *testing.T) {
	m := &machine{dead: 500, pods: []subject{pod("a", 0, 450, 0)}}
	reclaims := 0
	m.run(t, hundred, func(o *Options) {
		o.Reclaim = func(context.Context) error {
			reclaims++
			m.set(func() { m.dead = 0 })
			return errors.New("one file was busy")
		}
	}, func(manager *Manager) {
		wait(time.Minute)
		if len(m.list()) > 0 || reclaims != 1 {
			t.Errorf("evicted %q after %d reclaims, want none after one", m.list(), reclaims)
		}
		m.set(func() { m.dead, m.pods[0].usage.MemoryBytes = 700, 0 })
		wait(time.Minute)
		if len(m.list()) > 0 {
			t.Errorf("evicted %q, want dead pods reclaimed again", m.list())
		}
	})
}

func TestCriticalPodsStay(t *testing.T) {
	static := pod("static", 0, 500, 0)
	static.pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	m := &machine{memory: 450, pods: []subject{static, pod("system", systemCritical, 40, 0), pod("plain", 5, 10, 500)}}
	m.run(t, hundred, nil, func(*Manager) {
		wait(time.Hour)
		if want := []string{"plain 1s"}; !slices.Equal(m.list(), want) {
			t.Errorf("evicted %q, want %q", m.list(), want)
		}
	})
}

func TestAPodThatDoesNotEndIsNotWaitedForWithoutEnd(t *testing.T) {
	m := &machine{memory: 300, stuck: true, pods: []subject{pod("a", 0, 300, 0), pod("b", 0, 400, 0)}}
	m.run(t, hundred, nil, func(*Manager) {
		wait(29 * time.Second)
		if want := []string{"b 1s"}; !slices.Equal(m.list(), want) {
			t.Errorf("evicted %q, want %q and a wait", m.list(), want)
		}
		wait(2 * time.Second)
		if len(m.list()) < 2 {
			t.Errorf("evicted %q, want another try after 30 s", m.list())
		}
	})
}

func TestAMachineThatCannotBeReadEvictsNothing(t *testing.T) {
	m := &machine{memory: 1000, broken: errors.New("no /proc"), pods: []subject{pod("a", 0, 300, 0)}}
	m.run(t, hundred, nil, func(manager *Manager) {
		wait(time.Minute)
		if len(m.list()) > 0 || len(manager.Conditions()) > 0 {
			t.Errorf("evicted %q, conditions %v", m.list(), manager.Conditions())
		}
	})
}

func TestAVolumeOverItsLimit(t *testing.T) {
	limited := pod("limited", 0, 10, 0)
	limit := resource.MustParse("5Mi")
	limited.pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
	limited.usage.VolumeBytes = map[string]uint64{"data": 5 * mib}
	m := &machine{pods: []subject{limited}}
	var message string
	m.run(t, hundred, func(o *Options) {
		o.Evict = func(pod *v1.Pod, why string, grace time.Duration) <-chan struct{} {
			message = why
			return m.evict(pod, why, grace)
		}
	}, func(*Manager) {
		wait(time.Minute)
		if len(m.list()) > 0 {
			t.Errorf("at its limit: evicted %q", m.list())
		}
		m.set(func() { limited.usage.VolumeBytes = map[string]uint64{"data": 5*mib + 1} })
		wait(time.Minute)
		if want := `Usage of EmptyDir volume "data" exceeds the limit "5Mi". `; len(m.list()) != 1 || message != want {
			t.Errorf("evicted %q with %q, want %q", m.list(), message, want)
		}
	})
}

// A limit of ephemeral storage counts for what a container writes, and the sum of the limits for the pod with its volumes.
func TestStorageOverItsLimit(t *testing.T) {
	asks := func(limit string) (r v1.ResourceRequirements) {
		if limit != "" {
			r.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
		}
		return r
	}
	sidecar := v1.ContainerRestartPolicyAlways
	two := []v1.Container{{Name: "a", Resources: asks("2Mi")}, {Name: "b", Resources: asks("4Mi")}}
	for story, c := range map[string]struct {
		spec    v1.PodSpec
		disk, a uint64
		limits  bool
		want    string
	}{
		"no limit":      {v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}, 100 * mib, 100 * mib, false, ""},
		"at its limits": {v1.PodSpec{Containers: two}, 6 * mib, 2 * mib, true, ""},
		"container":     {v1.PodSpec{Containers: two}, 3 * mib, 2*mib + 1, true, `Container a exceeded its local ephemeral storage limit "2Mi". `},
		"pod":           {v1.PodSpec{Containers: two}, 6*mib + 1, 0, true, `Pod ephemeral local storage usage exceeds the total limit of containers 6Mi. `},
		"only one has a limit": {v1.PodSpec{Containers: []v1.Container{{Name: "a", Resources: asks("2Mi")}, {Name: "b"}}}, 3 * mib, 0, true,
			`Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. `},
		"large init container": {v1.PodSpec{InitContainers: []v1.Container{{Name: "i", Resources: asks("9Mi")}}, Containers: two}, 9 * mib, 0, true, ""},
		"sidecar": {v1.PodSpec{InitContainers: []v1.Container{{Name: "s", RestartPolicy: &sidecar, Resources: asks("1Mi")}}, Containers: two}, 7*mib + 1, 0, true,
			`Pod ephemeral local storage usage exceeds the total limit of containers 7Mi. `},
		"sidecar before a large init container": {v1.PodSpec{InitContainers: []v1.Container{
			{Name: "s", RestartPolicy: &sidecar, Resources: asks("1Mi")}, {Name: "i", Resources: asks("9Mi")},
		}, Containers: two}, 10 * mib, 0, true, ""},
	} {
		t.Run(story, func(t *testing.T) {
			pod := &v1.Pod{Spec: c.spec}
			usage := &runtime.Usage{DiskBytes: c.disk, Containers: map[string]runtime.ContainerUsage{"a": {DiskBytes: c.a}}}
			if got := overLimit(pod, usage); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := hasLimit(pod); got != c.limits {
				t.Errorf("got %v, want that it is measured: %v", got, c.limits)
			}
		})
	}
}

func TestAdmissionUnderPressure(t *testing.T) {
	bestEffort, asking, system := pod("best", 0, 0, 0).pod, pod("asking", 0, 0, 10).pod, pod("system", systemCritical, 0, 0).pod
	bestEffort.Status.QOSClass, asking.Status.QOSClass, system.Status.QOSClass = v1.PodQOSBestEffort, v1.PodQOSBurstable, v1.PodQOSBestEffort
	tolerant := bestEffort.DeepCopy()
	tolerant.Name = "tolerant"
	tolerant.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}
	other := bestEffort.DeepCopy()
	other.Spec.Tolerations = []v1.Toleration{{Key: v1.TaintNodeDiskPressure, Operator: v1.TolerationOpExists}}
	everything := bestEffort.DeepCopy()
	everything.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	for _, c := range []struct {
		story      string
		conditions []v1.NodeConditionType
		pod        *v1.Pod
		want       string
	}{
		{"no pressure", nil, bestEffort, ""},
		{"memory, nothing asked for", []v1.NodeConditionType{v1.NodeMemoryPressure}, bestEffort, "The node had condition: [MemoryPressure]. "},
		{"memory, something asked for", []v1.NodeConditionType{v1.NodeMemoryPressure}, asking, ""},
		{"memory, tolerated", []v1.NodeConditionType{v1.NodeMemoryPressure}, tolerant, ""},
		{"memory, everything tolerated", []v1.NodeConditionType{v1.NodeMemoryPressure}, everything, ""},
		{"memory, something else tolerated", []v1.NodeConditionType{v1.NodeMemoryPressure}, other, "The node had condition: [MemoryPressure]. "},
		{"disk", []v1.NodeConditionType{v1.NodeDiskPressure}, asking, "The node had condition: [DiskPressure]. "},
		{"memory and processes", []v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodePIDPressure}, asking, "The node had condition: [MemoryPressure PIDPressure]. "},
		{"critical", []v1.NodeConditionType{v1.NodeDiskPressure, v1.NodeMemoryPressure}, system, ""},
	} {
		m, err := New(Options{Read: func() (Observations, error) { return nil, nil }, Pods: func() []*v1.Pod { return nil },
			Evict: func(*v1.Pod, string, time.Duration) <-chan struct{} { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		m.conditions = c.conditions
		if got := m.Admit(c.pod); got != c.want {
			t.Errorf("%s: got %q, want %q", c.story, got, c.want)
		}
	}
}

func TestOptionsSayWhatIsMissing(t *testing.T) {
	_, err := New(Options{Interval: -1})
	for _, want := range []string{"Read", "Pods", "Evict", "negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

// The next look is due in the moment in which the context ends. Which of the two is seen first is random.
func TestNoPodIsEvictedAfterTheEndOfRun(t *testing.T) {
	thresholds, err := hundred.Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		evictions := 0
		m, err := New(Options{
			Thresholds: thresholds,
			Read: func() (Observations, error) {
				return Observations{MemoryAvailable: {Available: mib, Capacity: 1000 * mib}}, nil
			},
			Pods: func() []*v1.Pod { return []*v1.Pod{pod("a", 0, 600, 0).pod} },
			Evict: func(*v1.Pod, string, time.Duration) <-chan struct{} {
				evictions++
				cancel()
				ended := make(chan struct{})
				close(ended)
				return ended
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Run(ctx); err != nil || evictions != 1 {
			t.Fatalf("evicted %d times (%v), want once and nothing after the end of the context", evictions, err)
		}
	}
}

func TestRunMayBeCalledOnce(t *testing.T) {
	(&machine{}).run(t, hundred, nil, func(m *Manager) {
		synctest.Wait()
		if err := m.Run(t.Context()); !errors.Is(err, errRunTwice) {
			t.Errorf("second Run: got %v, want %v", err, errRunTwice)
		}
	})
}

// The kubelet evicts all pods whose volumes are over their limits at each look.
func TestVolumesOverTheirLimits_GoInOnePeriod(t *testing.T) {
	limit := resource.MustParse("5Mi")
	m := &machine{}
	for i := range 10 {
		limited := pod(fmt.Sprint("limited", i), 0, 10, 0)
		limited.pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
		limited.usage.VolumeBytes = map[string]uint64{"data": 6 * mib}
		m.pods = append(m.pods, limited)
	}
	m.run(t, hundred, func(o *Options) {}, func(*Manager) {
		wait(time.Minute)
		if got := m.list(); len(got) != 10 {
			t.Errorf("evicted %q within a minute, want all ten", got)
		}
	})
}
