package audit

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Side is a source of facts about the pods of a node.
type Side string

// The sides.
const (
	SideAPI     Side = "api"
	SideKubelet Side = "kubelet"
	SideRuntime Side = "runtime"
	SideMachine Side = "machine"
)

// Answer is when and from whom the facts of a side are.
type Answer struct {
	// From is the queried source: a URL, a socket, a directory.
	From string `json:"from,omitempty"`
	// At is when the facts were last known to be complete and current; zero if they never were.
	At time.Time `json:"at,omitzero"`
	// Since is from when on the side has answered without a gap; zero if it does not answer.
	Since time.Time `json:"since,omitzero"`
	// Err is why the side does not answer; empty if it does.
	Err string `json:"error,omitempty"`
	// Silent is since when it has not answered; zero if it does.
	Silent time.Time `json:"silent,omitzero"`
}

// Known reports whether the side answers, so that objects missing in its answer do not exist there.
func (a Answer) Known() bool { return a.Err == "" && !a.At.IsZero() }

// Facts are the facts of the four sides at one instant.
type Facts struct {
	Now  time.Time
	Node string
	API
	Kubelet
	Runtime
	Machine
}

// API has the API server's facts.
type API struct {
	APIAnswer Answer
	// APIConfirmed is until when a list has confirmed that the watch of pods missed nothing, or zero.
	// APIAnswer.At advances while the watch is open and delivers events or bookmarks.
	APIConfirmed time.Time
	// APIRestored is when the versions of the server were seen to have gone back, as after it was restored from a backup; zero if they have not.
	APIRestored time.Time
	// APIPods are the pods that are bound to the node.
	APIPods map[types.UID]Sighting
	// NodeObject is nil if the Node does not exist; NodeAt is when this copy came.
	NodeObject *v1.Node
	NodeAt     time.Time
	// Lease is nil if it does not exist; LeaseAt is when this copy came, on the clock of this machine.
	Lease   *coordinationv1.Lease
	LeaseAt time.Time
	// Clock is how far the server's clock is ahead of this machine's, known to ClockError; ClockAt is
	// when it was measured, zero if it was not.
	Clock, ClockError time.Duration
	ClockAt           time.Time
}

// Kubelet has the kubelet's facts.
type Kubelet struct {
	KubeletAnswer Answer
	KubeletPods   map[types.UID]Sighting
	// KubeletStatuses reports whether the status of each pod is the kubelet's own decision, as in the Pods API.
	// If false (GET /pods of a stock kubelet), only static pods have the kubelet's own status; a pod from the
	// API has the status that the kubelet last received from the API.
	KubeletStatuses bool
}

// Sighting is a pod as one side has it, and when this copy came. The pod is not changed afterwards.
type Sighting struct {
	Pod *v1.Pod
	At  time.Time
}

// Runtime has the container runtime's facts.
type Runtime struct {
	RuntimeAnswer Answer
	Sandboxes     map[string]Sandbox
	Containers    map[string]Container
}

// Sandbox is a pod sandbox of the runtime.
type Sandbox struct {
	ID              string
	UID             types.UID
	Namespace, Name string
	Attempt         uint32
	Ready           bool
	Created         time.Time
	IPs             []string
	At              time.Time
}

// ContainerState is the state of a container at the runtime.
type ContainerState string

// The states of containers of the runtime.
const (
	ContainerCreated ContainerState = "created"
	ContainerRunning ContainerState = "running"
	ContainerExited  ContainerState = "exited"
	ContainerUnknown ContainerState = "unknown"
)

// Container is a container of the runtime.
type Container struct {
	ID, SandboxID              string
	UID                        types.UID // of its pod
	Namespace, PodName, Name   string
	Attempt                    uint32 // the restart count
	State                      ContainerState
	Created, Started, Finished time.Time
	ExitCode                   int32
	Reason, Message            string
	Image                      string
	At                         time.Time
}

// Machine has the operating system's facts.
type Machine struct {
	MachineAnswer Answer
	// PodDirs are the directories of pods below the kubelet's root.
	PodDirs map[types.UID]PodDir
	// Cgroups are the control groups of pods.
	Cgroups map[types.UID]Cgroup
	// Manifests are the static pods on disk; ManifestsKnown reports whether their directory was read.
	Manifests      []Manifest
	ManifestsKnown bool
	// Process is the kubelet's process, nil if none was found. ProcessKnown reports whether the processes of
	// the machine could be read; if so, a nil Process means that the kubelet does not run.
	Process      *Process
	ProcessKnown bool
	// Boot is when the machine was started.
	Boot time.Time
	// Identity is the machine's identity.
	Identity Identity
	// Addresses are the IP addresses of the machine; empty if they are not known.
	Addresses []string
}

// Identity is the machine's identity as a kubelet reports it in nodeInfo. Empty fields are unknown.
type Identity struct {
	MachineID, SystemUUID, BootID string
}

// PodDir is the directory of a pod.
type PodDir struct {
	Path    string
	Changed time.Time
	// Mounts are the mounts below the directory.
	Mounts []string
	// Volumes are the directories of volumes that are not empty.
	Volumes []string
	At      time.Time
}

// Cgroup is the control group of a pod.
type Cgroup struct {
	Path      string
	Processes int
	// Frozen: the group, or a group below it that has processes, is frozen, so that nothing in it runs.
	Frozen bool
	// Stopped are the names of the groups below it whose processes have all been stopped by a signal. The runtime names such a group after
	// the ID of its container.
	Stopped []string
	At      time.Time
}

// Manifest is a static pod on disk.
type Manifest struct {
	Path            string
	Namespace, Name string // Name is the pod's name with the node's name
}

// Process is a process of the machine.
type Process struct {
	PID     int
	Started time.Time
	// Stopped: it has been stopped by a signal, and does not run. Frozen: its control group is frozen, as by systemctl freeze.
	Stopped, Frozen bool
}
