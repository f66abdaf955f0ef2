package explain

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// Facts are the known facts about a pod. Only Pod and Now are required.
type Facts struct {
	// Now is when the facts were collected.
	Now time.Time
	// Pod has the metadata and the spec.
	Pod *v1.Pod
	// Status is the status that the node reports. If nil, the status in Pod is used.
	Status *v1.PodStatus
	// Containers has the node agent's facts beyond the status, by container name.
	Containers map[string]Container
	// Waits is what the node waits for before it starts any container of the pod, as a clause; empty
	// if it does not wait.
	Waits string
	// Delivery is the progress of the delivery of the pod's status. Nil means unknown.
	Delivery *podstatus.Delivery
	// Node has the facts that affect all pods of the node.
	Node Node
	// Warnings are the last Warning events of the pod, the newest last.
	Warnings []Warning
	// Claims are the PersistentVolumeClaims of a pod without a node that are not bound.
	Claims []Claim
	// Absent are the missing objects that a pod without a node refers to, such as ResourceClaim "gpu".
	Absent []string
	// Taints are the taints of nodes that a pod without a node does not tolerate.
	Taints []string
	// Closest are the nodes that come closest to the requests of a pod without a node.
	Closest []Closest
	// Untrue lists what is wrong in the pod's status in the API, as found by an audit.
	Untrue []Untruth
}

// Container has a node agent's facts about a container beyond its status.
type Container struct {
	podstatus.ContainerFacts
	Startup, Liveness, Readiness *podstatus.Probe
	// Pulling is when the pull of the image began; zero if no pull is under way.
	Pulling time.Time
	// Log is the end of the log of the last failed run; nil if unknown.
	Log *Log
}

// Node has the facts about the node.
type Node struct {
	Name string
	// Pressure are the node conditions in effect, such as MemoryPressure.
	Pressure []v1.NodeConditionType
	// ShuttingDown: the machine is shutting down and ends its pods.
	ShuttingDown bool
	// Unreachable is since when the node cannot reach the API server; zero if it can. The facts are then the node's own.
	Unreachable time.Time
	// Silent is when the node last reported, if too long ago; zero if the node reports. The facts are then from the API, as of
	// that time.
	Silent time.Time
	// NotReady is the message of a node that reports not Ready; empty if the node is Ready.
	NotReady string
	// Gone: the Node no longer exists in the API.
	Gone bool
	// Left are the node's free resources near the [Moments] that matter.
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

// condition returns a condition of the status, or nil.
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

// unlisted appends the containers that are in the status but not in the spec, as for a pod with a
// partial spec.
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
