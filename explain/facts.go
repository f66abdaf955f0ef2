package explain

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
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
	Delivery *podstatus.Delivery
	// Node is what holds all pods of the node.
	Node Node
	// Warnings are the last Warning events of the pod, the newest last.
	Warnings []Warning
	// Claims are the PersistentVolumeClaims of a pod without a node that are not bound.
	Claims []Claim
	// Absent are the objects that a pod without a node names and that do not exist, such as ResourceClaim "gpu".
	Absent []string
	// Taints are those of nodes that a pod without a node does not tolerate.
	Taints []string
	// Closest are the nodes that come closest to what a pod without a node asks for.
	Closest []Closest
	// Untrue is how what the API reports of the pod is not true, as an audit has found.
	Untrue []Untruth
}

// Container is what a node agent knows of a container beyond its status.
type Container struct {
	podstatus.ContainerFacts
	Startup, Liveness, Readiness *podstatus.Probe
	// Pulling is since when its image is being pulled; zero if it is not.
	Pulling time.Time
	// Log is the end of the log of the run that failed last; nil if that is not known.
	Log *Log
}

// Node is what is known of the node.
type Node struct {
	Name string
	// Pressure are the node conditions in effect, such as MemoryPressure.
	Pressure []v1.NodeConditionType
	// ShuttingDown: the machine goes down and ends its pods.
	ShuttingDown bool
	// Unreachable says since when the node has not reached the API server; zero if it does. The facts are the node's own.
	Unreachable time.Time
	// Silent is when the node was last heard of, if that is too long ago; zero if the node is heard of. The facts are those of the
	// API, and were true then.
	Silent time.Time
	// NotReady is what a node says that is heard of and reports that it is not Ready, empty if it is Ready.
	NotReady string
	// Gone: the node is not in the API any more.
	Gone bool
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

// condition returns a condition of the status, nil if there is none.
func (f Facts) condition(t v1.PodConditionType) *v1.PodCondition {
	return podstatus.FindCondition(f.status().Conditions, t)
}

// container is one container of the pod with everything that is known of it.
type container struct {
	Container
	spec   *v1.Container
	status *v1.ContainerStatus // nil: not reported
	kind   podrules.Kind
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
			kind: podrules.KindInitContainer, sidecar: podstatus.IsSidecar(spec),
		})
	}
	for i := range f.Pod.Spec.Containers {
		spec := &f.Pod.Spec.Containers[i]
		regular = append(regular, container{
			Container: f.Containers[spec.Name], spec: spec, status: named(status.ContainerStatuses, spec.Name),
			kind: podrules.KindContainer,
		})
	}
	inits = f.unlisted(inits, status.InitContainerStatuses, podrules.KindInitContainer)
	regular = f.unlisted(regular, status.ContainerStatuses, podrules.KindContainer)
	return inits, regular
}

// unlisted appends the containers that the status has and the spec does not, as of a pod of which
// only a part is known.
func (f Facts) unlisted(list []container, statuses []v1.ContainerStatus, kind podrules.Kind) []container {
	for i := range statuses {
		name := statuses[i].Name
		if !slices.ContainsFunc(list, func(c container) bool { return c.spec.Name == name }) {
			list = append(list, container{Container: f.Containers[name], spec: &v1.Container{Name: name}, status: &statuses[i], kind: kind})
		}
	}
	return list
}

// container is a container of the pod by its name.
func (f Facts) container(name string) container {
	inits, regular := f.containers()
	for _, c := range append(inits, regular...) {
		if c.spec.Name == name {
			return c
		}
	}
	return container{spec: &v1.Container{Name: name}}
}

func named(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}
