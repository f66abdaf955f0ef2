package podstatus

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/podrules"
)

// Facts are the facts of a node about a pod beyond its spec and its previous status. The zero value
// means that no container was started. No field is required: a missing fact yields the value that
// the kubelet reports as long as it has no data.
type Facts struct {
	// Attempts are the recorded starts of containers, in any order. A container of the spec without
	// an attempt waits, or is lost if it was reported as running.
	Attempts []Attempt

	// Sandbox reports that the pod has a sandbox with a network.
	Sandbox bool

	// IPs are the addresses of the pod, the primary address first. A pod in the host network has
	// the addresses in HostIPs.
	IPs []string

	// HostIPs are the addresses of the node, the primary address first.
	HostIPs []string

	// StartTime is when the node accepted the pod; by default the time of the first status.
	StartTime time.Time

	// Ended reports that no container of the pod runs and none will be started again, whatever the
	// restart policy.
	Ended bool

	// Failure is why the node ends the pod, or nil.
	Failure *Failure

	// EnforceDeadline fails a pod that was active for longer than activeDeadlineSeconds.
	EnforceDeadline bool

	// Waiting has the reasons, by container name, why containers that should run do not run.
	Waiting map[string]v1.ContainerStateWaiting

	// Restarting holds the IDs of containers that the node has stopped in order to restart them,
	// whatever their exit code.
	Restarting map[string]bool

	// Resources are the actual resources of running containers, by container ID; by default the
	// resources in the spec.
	Resources map[string]v1.ResourceRequirements

	// Conditions are additional conditions of the node: the conditions of a resize, and types that
	// the node owns.
	Conditions []v1.PodCondition

	// Probe, if set, decides Ready and Started of the container statuses. It is called once, when
	// everything but the conditions is decided. Containers that were reported with the same ID
	// before have the previous values, other containers have none. Attempt.Ready and
	// Attempt.Started are not used.
	Probe func(*v1.PodStatus)
}

// Attempt is one start of a container.
type Attempt struct {
	// Container is the name of the container in the spec: init, regular or ephemeral.
	Container string
	// ID is unique for each start: "containerd://9f86d081884c7d65".
	ID string
	// Number counts the starts of the container, from 0. It becomes the restart count.
	Number int
	State  AttemptState

	// Image is the image that the container was started from, by default the image in the spec.
	// ImageID defaults to Image, once the container was started.
	Image, ImageID string

	// Ready and Started are the results of probes. By default, a running container is started
	// unless it has a startup probe, and ready unless it has a readiness probe; with a probe, the
	// values reported before for the same ID stay.
	Ready, Started *bool

	StartedAt time.Time

	// FinishedAt, ExitCode and Signal are set for a container that has exited.
	FinishedAt time.Time
	ExitCode   int32
	Signal     int32
	// Reason and Message are why the container has exited, or why a created container waits. By
	// default, the reason is Completed or Error for an exit, by the exit code, and PodInitializing
	// or ContainerCreating for a wait.
	Reason  string
	Message string

	// EarlierSandbox reports that the container ran in a sandbox that is gone, as after a restart
	// of the machine: the attempt counts for restarts and last states, but does not prove that the
	// pod is initialized.
	EarlierSandbox bool
}

// AttemptState is the state of an [Attempt].
type AttemptState int

const (
	// AttemptCreated: the container exists, but its command was not started yet.
	AttemptCreated AttemptState = iota
	// AttemptRunning: the command runs.
	AttemptRunning
	// AttemptExited: the container has ended.
	AttemptExited
)

// Failure is why a node ends a pod: an eviction, a preemption, a shutdown.
type Failure struct {
	// Reason and Message become the reason and message of the status.
	Reason, Message string
	// Condition, if set, is the DisruptionTarget of the pod.
	Condition *v1.PodCondition
}

// Generate returns the status of a pod from the facts of its node: container statuses for all
// containers of the spec, phase, conditions, addresses, QoS class, start time, observed generation.
// The API server accepts the status even if facts are incomplete.
//
// Previous is the status reported before, or the API's; it may be the zero value. Generate takes
// from previous what facts do not contain: restart counts and last terminations of containers that
// the runtime has forgotten, a terminal phase, transition times. Conditions named by readiness
// gates are looked up in pod.Status. The result shares no memory with the arguments.
//
// Owned are condition types that the reporter owns, besides the kubelet's.
func Generate(pod *v1.Pod, facts Facts, previous v1.PodStatus, now time.Time, owned ...v1.PodConditionType) v1.PodStatus {
	o := podrules.Owning(owned...)
	g := generation{pod: pod, facts: &facts, old: &previous}
	status := v1.PodStatus{
		QOSClass:                   podrules.QOSClass(pod),
		StartTime:                  g.startTime(),
		ObservedGeneration:         pod.Generation,
		InitContainerStatuses:      g.containerStatuses(pod.Spec.InitContainers, previous.InitContainerStatuses),
		ContainerStatuses:          g.containerStatuses(pod.Spec.Containers, previous.ContainerStatuses),
		EphemeralContainerStatuses: g.ephemeralStatuses(pod.Spec.EphemeralContainers, previous.EphemeralContainerStatuses),
	}
	g.addresses(&status)
	g.decidePhase(&status)
	g.fail(&status, now)
	if facts.Probe != nil {
		facts.Probe(&status)
	}
	status.Conditions = g.conditions(o, &status)
	return o.Next(pod, &previous, &status, now)
}

// generation is what one status is made from.
type generation struct {
	pod   *v1.Pod
	facts *Facts
	old   *v1.PodStatus
}

func (g *generation) startTime() *metav1.Time {
	switch {
	case !g.old.StartTime.IsZero():
		return g.old.StartTime
	case !g.facts.StartTime.IsZero():
		return &metav1.Time{Time: g.facts.StartTime}
	}
	return nil
}

func (g *generation) addresses(status *v1.PodStatus) {
	for _, ip := range g.facts.HostIPs {
		status.HostIPs = append(status.HostIPs, v1.HostIP{IP: ip})
	}
	ips := g.facts.IPs
	if len(ips) == 0 && g.pod.Spec.HostNetwork {
		ips = g.facts.HostIPs
	}
	for _, ip := range ips {
		status.PodIPs = append(status.PodIPs, v1.PodIP{IP: ip})
	}
	podrules.PairAddresses(&status.PodIP, &status.PodIPs)
	podrules.PairAddresses(&status.HostIP, &status.HostIPs)
}

// decidePhase sets the phase that the containers add up to, and keeps what explains it.
func (g *generation) decidePhase(status *v1.PodStatus) {
	all := initAndRegular(status)
	for i := range all {
		// A container that the node has stopped is between two runs, not ended.
		if exit := podrules.LastExit(&all[i]); exit != nil && g.facts.Restarting[exit.ContainerID] && !g.facts.Ended {
			all[i].State = v1.ContainerState{Running: &v1.ContainerStateRunning{}}
		}
	}
	status.Phase = podrules.Phase(g.pod, all, g.facts.Ended, g.hasInitialized())
	switch { // an ended pod stays ended, whether the API or this node said so
	case podrules.IsTerminal(g.pod.Status.Phase):
		status.Phase = g.pod.Status.Phase
	case podrules.IsTerminal(g.old.Phase):
		status.Phase = g.old.Phase
	}
	if status.Phase == g.old.Phase {
		status.Reason, status.Message = g.old.Reason, g.old.Message
	}
}

// fail applies what the node itself decides about the phase.
func (g *generation) fail(status *v1.PodStatus, now time.Time) {
	end := Deadline(g.pod, g.old.StartTime)
	if g.facts.EnforceDeadline && !podrules.IsTerminal(status.Phase) && !end.IsZero() && !now.Before(end) {
		status.Phase, status.Reason, status.Message = v1.PodFailed, podrules.ReasonDeadlineExceeded, messageDeadlineExceeded
	}
	if failure := g.facts.Failure; failure != nil && !podrules.IsTerminal(g.old.Phase) {
		if status.Phase != v1.PodSucceeded {
			status.Phase = v1.PodFailed
		}
		status.Reason, status.Message = failure.Reason, failure.Message
	}
}

// Deadline returns when a pod that started at start exceeds its activeDeadlineSeconds; zero means
// never.
func Deadline(pod *v1.Pod, start *metav1.Time) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || start.IsZero() {
		return time.Time{}
	}
	return start.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

// hasInitialized reports whether a regular container was started in the present sandbox:
// proof that the initialization of the pod was over once.
func (g *generation) hasInitialized() bool {
	return slices.ContainsFunc(g.facts.Attempts, func(a Attempt) bool {
		return !a.EarlierSandbox && podrules.SpecNamed(g.pod.Spec.Containers, a.Container) != nil
	})
}

// generators make a condition for a status whose earlier conditions are given, nil if the status
// needs none. Without a generator a condition is only there if it is reported.
var generators = map[v1.PodConditionType]func(g *generation, status *v1.PodStatus, earlier []v1.PodCondition) *v1.PodCondition{
	v1.DisruptionTarget:          (*generation).disruptionTarget,
	v1.PodReadyToStartContainers: (*generation).readyToStartContainers,
	v1.PodInitialized:            (*generation).initialized,
	v1.PodReady:                  (*generation).ready,
	v1.ContainersReady:           (*generation).containersReady,
	v1.PodScheduled:              (*generation).scheduled,
	v1.AllContainersRestarting:   (*generation).allContainersRestarting,
}

// conditions returns the conditions of a status in one order: first the conditions of
// others, since readiness gates look at them, then the conditions of the kubelet's table. What facts brings counts
// before what would be generated.
func (g *generation) conditions(o podrules.Ownership, status *v1.PodStatus) []v1.PodCondition {
	given := g.facts.Conditions
	var all []v1.PodCondition
	for _, c := range g.pod.Status.Conditions {
		if o.IsForeign(c.Type) && podrules.FindCondition(given, c.Type) == nil {
			all = append(all, c)
		}
	}
	for _, c := range given {
		if (podrules.Ownership{}).IsForeign(c.Type) {
			all = append(all, c)
		}
	}
	for _, row := range podrules.KubeletTypes {
		c := podrules.LastOfType(given, row.Type)
		if generate := generators[row.Type]; c == nil && generate != nil {
			c = generate(g, status, all)
		}
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// disruptionTarget returns the condition of the failure, or the previous condition.
func (g *generation) disruptionTarget(_ *v1.PodStatus, _ []v1.PodCondition) *v1.PodCondition {
	if f := g.facts.Failure; f != nil && f.Condition != nil && !podrules.IsTerminal(g.old.Phase) {
		c := *f.Condition
		c.ObservedGeneration = g.pod.Generation
		return &c
	}
	if c := podrules.FindCondition(g.old.Conditions, v1.DisruptionTarget); c != nil {
		return c
	}
	return podrules.FindCondition(g.pod.Status.Conditions, v1.DisruptionTarget)
}

// readyToStartContainers is false for a pod that has ended, whatever the runtime keeps of it.
func (g *generation) readyToStartContainers(_ *v1.PodStatus, _ []v1.PodCondition) *v1.PodCondition {
	c := podrules.ReadyToStartContainers(g.pod, g.facts.Ended || !g.facts.Sandbox)
	return &c
}

func (g *generation) initialized(status *v1.PodStatus, _ []v1.PodCondition) *v1.PodCondition {
	c := podrules.Initialized(g.pod, g.old, initAndRegular(status), status.Phase)
	return &c
}

func (g *generation) ready(status *v1.PodStatus, earlier []v1.PodCondition) *v1.PodCondition {
	c := podrules.Ready(g.pod, earlier, initAndRegular(status), status.Phase)
	return &c
}

func (g *generation) containersReady(status *v1.PodStatus, _ []v1.PodCondition) *v1.PodCondition {
	c := podrules.ContainersReady(g.pod, initAndRegular(status), status.Phase)
	return &c
}

func (g *generation) scheduled(_ *v1.PodStatus, _ []v1.PodCondition) *v1.PodCondition {
	c := podrules.Generated(g.pod, v1.PodScheduled, v1.ConditionTrue)
	return &c
}

func (g *generation) allContainersRestarting(status *v1.PodStatus, _ []v1.PodCondition) *v1.PodCondition {
	if !podrules.CouldRestartAll(g.pod) {
		return nil
	}
	c := podrules.AllContainersRestarting(g.pod, g.old, g.held(), status.Phase)
	return &c
}

func initAndRegular(status *v1.PodStatus) []v1.ContainerStatus {
	return slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
}

// held are the newest attempts, as the runtime has them.
func (g *generation) held() []v1.ContainerStatus {
	var held []v1.ContainerStatus
	for i := range g.facts.Attempts {
		name := g.facts.Attempts[i].Container
		if podrules.StatusNamed(held, name) != nil {
			continue
		}
		newest, _ := g.attemptsOf(name)
		status := v1.ContainerStatus{Name: name, ContainerID: newest.ID}
		if newest.State == AttemptExited {
			status.State.Terminated = newest.Terminated()
		}
		held = append(held, status)
	}
	return held
}
