package explain

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// Facts are what is known of a pod. Only Pod and Now are required.
type Facts struct {
	// Now is when the facts were collected.
	Now time.Time
	// Pod has the metadata and the spec.
	Pod *v1.Pod
	// Status is what the node reports of the pod. If nil, it is that of Pod.
	Status *v1.PodStatus
	// Containers has what the node agent knows beyond the status, by name of the container.
	Containers map[string]Container
	// Waits is what the node waits for before it starts anything of the pod, as a clause; empty if it
	// waits for nothing.
	Waits string
	// Delivery is how far the reports of the pod have come. Nil means that it is unknown.
	Delivery *Delivery
	// Node is what holds all pods of the node.
	Node Node
	// Warnings are the last Warning events of the pod, the newest last.
	Warnings []Warning
	// Untrue is how what the API reports of the pod is not true, as an audit has found.
	Untrue []Untruth
}

// Container is what a node agent knows of a container beyond its status.
type Container struct {
	Startup, Liveness, Readiness *Probe
	// NextStart is when the container is started again at the earliest.
	NextStart time.Time
	// Hook is the lifecycle hook that runs, "postStart" or "preStop", since HookSince.
	Hook      string
	HookSince time.Time
	// KillAt is when the container is killed if it has not stopped by then.
	KillAt time.Time
}

// Probe is what the probes of one kind have found in the current run of a container.
type Probe struct {
	// Failures counts the failures since the last success, the first of them at Since.
	Failures int
	Since    time.Time
	// Successes counts the successes since the last failure; then Since is the first of them.
	Successes int
	// Answer is the last answer, such as "connection refused", given at At.
	Answer string
	At     time.Time
	// NotBefore is when the first probe is due, if there was none yet.
	NotBefore time.Time
}

// Delivery is how far the reports of a pod have come.
type Delivery struct {
	// Version is the newest change of the status, Accepted the newest that the API server took.
	Version, Accepted uint64
	// Since is when the first change after Accepted was made.
	Since time.Time
	// Attempts counts the tries without success, Err is the last error, NextTry when the next is due.
	Attempts int
	Err      string
	NextTry  time.Time
	// Held is what the change waits for on this node, empty if it waits for the API server.
	Held string
	// Refused are the fields that the API server refuses.
	Refused []string
	// Writer is another writer that changes the status back, Rounds how often it has.
	Writer string
	Rounds int
}

// Node is what is known of the node.
type Node struct {
	Name string
	// Pressure are the node conditions in effect, such as MemoryPressure.
	Pressure []v1.NodeConditionType
	// ShuttingDown: the machine goes down and ends its pods.
	ShuttingDown bool
	// Unreachable says since when the API server has not been reached; zero if it is reached.
	Unreachable time.Time
	// Left is what it had left near the [Moments] that matter.
	Left []Left
}

// Warning is an event of type Warning.
type Warning struct {
	Reason, Message string
	// Container is the name of the container that the event is about, empty for the pod.
	Container string
	Count     int
	Last      time.Time
}

func (f Facts) status() *v1.PodStatus {
	if f.Status != nil {
		return f.Status
	}
	return &f.Pod.Status
}

// warning returns the newest warning about a container (empty: the pod) with one of the reasons.
func (f Facts) warning(container string, reasons ...string) *Warning {
	for i := len(f.Warnings) - 1; i >= 0; i-- {
		w := &f.Warnings[i]
		if w.Container != container {
			continue
		}
		for _, reason := range reasons {
			if w.Reason == reason {
				return w
			}
		}
	}
	return nil
}

// probeWarning returns the newest warning about a probe of a container, nil if there is none. The
// kind is startup, readiness or liveness; empty is any.
func (f Facts) probeWarning(container, kind string) *Warning {
	for i := len(f.Warnings) - 1; i >= 0; i-- {
		w := &f.Warnings[i]
		if w.Container == container && w.Reason == "Unhealthy" && strings.HasPrefix(strings.ToLower(w.Message), kind) {
			return w
		}
	}
	return nil
}

// probeFailures counts the failures of a probe of a container that warnings report; each answer has a warning of its own.
func (f Facts) probeFailures(container, kind string) int {
	count := 0
	for _, w := range f.Warnings {
		if w.Container == container && w.Reason == "Unhealthy" && strings.HasPrefix(strings.ToLower(w.Message), kind) {
			count += max(1, w.Count)
		}
	}
	return count
}

// condition returns a condition of the status, nil if there is none.
func (f Facts) condition(t v1.PodConditionType) *v1.PodCondition {
	return podstatus.FindCondition(f.status().Conditions, t)
}

// container is one container of the pod with everything that is known of it.
type container struct {
	Container
	spec   *v1.Container
	status *v1.ContainerStatus // nil: not reported
	kind   podstatus.Kind
	// sidecar: an init container that keeps running.
	sidecar bool
}

// containers returns the containers in the order in which they start: init, then regular ones.
func (f Facts) containers() (inits, regular []container) {
	status := f.status()
	for i := range f.Pod.Spec.InitContainers {
		spec := &f.Pod.Spec.InitContainers[i]
		inits = append(inits, container{
			Container: f.Containers[spec.Name], spec: spec, status: named(status.InitContainerStatuses, spec.Name),
			kind: podstatus.KindInitContainer, sidecar: podstatus.IsSidecar(spec),
		})
	}
	for i := range f.Pod.Spec.Containers {
		spec := &f.Pod.Spec.Containers[i]
		regular = append(regular, container{
			Container: f.Containers[spec.Name], spec: spec, status: named(status.ContainerStatuses, spec.Name),
			kind: podstatus.KindContainer,
		})
	}
	inits = f.unlisted(inits, status.InitContainerStatuses, podstatus.KindInitContainer)
	regular = f.unlisted(regular, status.ContainerStatuses, podstatus.KindContainer)
	return inits, regular
}

// unlisted appends the containers that the status has and the spec does not, as of a pod of which
// only a part is known.
func (f Facts) unlisted(list []container, statuses []v1.ContainerStatus, kind podstatus.Kind) []container {
	for i := range statuses {
		name := statuses[i].Name
		if !slices.ContainsFunc(list, func(c container) bool { return c.spec.Name == name }) {
			list = append(list, container{Container: f.Containers[name], spec: &v1.Container{Name: name}, status: &statuses[i], kind: kind})
		}
	}
	return list
}

func named(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}
