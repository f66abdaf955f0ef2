package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/podstatus"
)

// Reasons of a [Rejection].
const (
	// ReasonNodeAffinity: the node does not have the labels that the pod requires.
	ReasonNodeAffinity = "NodeAffinity"
	// ReasonTaint: the node has a taint that the pod does not tolerate.
	ReasonTaint = "TaintToleration"
	// ReasonNodePorts: another pod has a host port that the pod requests.
	ReasonNodePorts = "NodePorts"
	// ReasonOutOf is followed by the name of the resource that the node has too little of.
	ReasonOutOf = "OutOf"
)

// Rejection is why a pod is not admitted to a node. Reason and Message go to the status of
// the pod, which ends as Failed.
type Rejection struct {
	Reason  string
	Message string
	// Shortage is set if another pod that leaves would make room.
	Shortage *Shortage
}

// Shortage is a resource that the node has too little of.
type Shortage struct {
	Resource                  v1.ResourceName
	Requested, Used, Capacity int64 // thousandths of a cpu, bytes of the others
}

// Check decides whether a node can take one more pod beside the active ones, as the kubelet
// does: resources, labels, host ports, taints. Check returns nil if it can.
func Check(node *v1.Node, pod *v1.Pod, active []*v1.Pod) *Rejection {
	if short := fitsResources(node.Status.Allocatable, pod, active); short != nil {
		return short
	}
	if !matchesNode(pod, node) {
		return predicate(ReasonNodeAffinity, "node(s) didn't match Pod's node affinity/selector")
	}
	if taken := portsTaken(pod, active); taken != "" {
		return predicate(ReasonNodePorts, "node(s) didn't have free ports for the requested pod ports: "+taken)
	}
	if !podstatus.IsStatic(pod) && !toleratesAll(pod.Spec.Tolerations, node.Spec.Taints) {
		return predicate(ReasonTaint, "node(s) had taints that the pod didn't tolerate")
	}
	return nil
}

func predicate(name, why string) *Rejection {
	return &Rejection{Reason: name, Message: fmt.Sprintf("Predicate %s failed: %s", name, why)}
}

// fitsResources compares the requests of the pod with the free resources. An extended resource,
// such as example.com/gpu, that the node does not list is ignored, as by the kubelet: another
// component may provide it.
func fitsResources(allocatable v1.ResourceList, pod *v1.Pod, active []*v1.Pod) *Rejection {
	if most, counted := allocatable[v1.ResourcePods]; counted && int64(len(active))+1 > most.Value() {
		return outOf(v1.ResourcePods, 1, int64(len(active)), most.Value())
	}
	wanted := Requests(pod)
	for _, name := range inOrder(wanted) {
		request := wanted[name]
		if _, listed := allocatable[name]; request.IsZero() || !listed && isExtended(name) {
			continue
		}
		used := resource.Quantity{}
		for _, other := range active {
			used.Add(Requests(other)[name])
		}
		capacity := allocatable[name]
		left := capacity.DeepCopy()
		left.Sub(used)
		if request.Cmp(left) > 0 {
			return outOf(name, amount(name, request), amount(name, used), amount(name, capacity))
		}
	}
	return nil
}

// inOrder returns the resources in the order in which the first shortage is named: CPU, memory and
// ephemeral storage, then the others by name.
func inOrder(wanted v1.ResourceList) []v1.ResourceName {
	names := []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isExtended reports whether a resource is not one of Kubernetes' own, such as cpu or hugepages-2Mi.
func isExtended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}

// amount is the number that messages show: thousandths of a cpu, bytes of the others.
func amount(name v1.ResourceName, q resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func outOf(name v1.ResourceName, requested, used, capacity int64) *Rejection {
	return &Rejection{
		Reason: ReasonOutOf + string(name),
		Message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
			name, requested, used, capacity),
		Shortage: &Shortage{Resource: name, Requested: requested, Used: used, Capacity: capacity},
	}
}

// portsTaken names the requested host ports that active pods have, with those pods, or returns "". A containerPort without hostPort does
// not count, even if containers share the network of the machine: the scheduler does not count it either, and would keep binding pods to
// the node.
func portsTaken(pod *v1.Pod, active []*v1.Pod) string {
	wanted := hostPorts(pod)
	var taken []string
	for _, other := range active {
		if len(wanted) == 0 {
			break
		}
		for port := range hostPorts(other) {
			for w := range wanted {
				if w.conflicts(port) {
					taken = append(taken, fmt.Sprintf("pod %s/%s has %d", other.Namespace, other.Name, port.port))
				}
			}
		}
	}
	slices.Sort(taken)
	return strings.Join(slices.Compact(taken), ", ")
}

// hostPort is a port of the machine at one of its addresses, or at all.
type hostPort struct {
	ip       string
	protocol v1.Protocol
	port     int32
}

// allAddresses is the address of a port that names none.
const allAddresses = "0.0.0.0"

// conflicts reports whether two pods cannot have these ports at the same time.
func (p hostPort) conflicts(other hostPort) bool {
	return p.protocol == other.protocol && p.port == other.port &&
		(p.ip == other.ip || p.ip == allAddresses || other.ip == allAddresses)
}

func hostPorts(pod *v1.Pod) map[hostPort]bool {
	ports := map[hostPort]bool{}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil { // any other gives its ports back
			addPorts(ports, c)
		}
	}
	for i := range pod.Spec.Containers {
		addPorts(ports, &pod.Spec.Containers[i])
	}
	return ports
}

func addPorts(ports map[hostPort]bool, c *v1.Container) {
	for _, p := range c.Ports {
		if p.HostPort > 0 {
			ports[hostPort{cmp.Or(p.HostIP, allAddresses), cmp.Or(p.Protocol, v1.ProtocolTCP), p.HostPort}] = true
		}
	}
}
