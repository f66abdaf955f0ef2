package worker

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/runtime"
)

// Rejection is why a pod is not run on this node. Reason and Message become those of the
// pod, which ends as Failed.
type Rejection struct {
	Reason  string
	Message string
	// Shortage is set if another pod that leaves would make room.
	Shortage *Shortage
}

// Shortage is what a node has too little of.
type Shortage struct {
	Resource                  v1.ResourceName
	Requested, Used, Capacity int64 // thousandths of a cpu, bytes of the others
}

// Fit decides whether a node can take one more pod, as the kubelet does: resources and
// host ports that the active pods leave, then labels and taints. It returns nil if it
// can. It is what most agents use as [Options.Admit].
func Fit(node *v1.Node, pod *v1.Pod, active []*v1.Pod) *Rejection {
	return Fitting{}.Fit(node, pod, active)
}

// Fitting is how a node counts what pods take of it.
type Fitting struct {
	// SharedPorts says that each port of a container is a port of the machine, not only
	// one with a hostPort: see [runtime.SharesHostNetwork].
	SharedPorts bool
}

// Fit is the function [Fit] for a node that counts in this way.
func (f Fitting) Fit(node *v1.Node, pod *v1.Pod, active []*v1.Pod) *Rejection {
	if r := fitsResources(node.Status.Allocatable, pod, active); r != nil {
		return r
	}
	if !matchesNode(pod, node) {
		return predicate(ReasonNodeAffinity, "node(s) didn't match Pod's node affinity/selector")
	}
	if f.portsTaken(pod, active) {
		return predicate(ReasonNodePorts, "node(s) didn't have free ports for the requested pod ports")
	}
	if !podstatus.IsStatic(pod) && !toleratesAll(pod.Spec.Tolerations, node.Spec.Taints) {
		return predicate(ReasonTaint, "node(s) had taints that the pod didn't tolerate")
	}
	return nil
}

func predicate(name, why string) *Rejection {
	return &Rejection{Reason: name, Message: fmt.Sprintf("Predicate %s failed: %s", name, why)}
}

// unsupported rejects a pod that asks for what the runtime cannot do.
func unsupported(found []runtime.Unsupported) *Rejection {
	if len(found) == 0 {
		return nil
	}
	return &Rejection{Reason: ReasonUnsupported, Message: runtime.Describe(found)}
}

// fitsResources compares what the pod requests with what is left. A resource that the
// node does not list is not looked at, save for cpu, memory and storage.
func fitsResources(allocatable v1.ResourceList, pod *v1.Pod, active []*v1.Pod) *Rejection {
	if most, counted := allocatable[v1.ResourcePods]; counted && int64(len(active))+1 > most.Value() {
		return outOf(v1.ResourcePods, 1, int64(len(active)), most.Value())
	}
	wanted := Requests(pod)
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		request := wanted[name]
		if request.IsZero() {
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

// portsTaken reports whether an active pod has a port that the pod asks for.
func (f Fitting) portsTaken(pod *v1.Pod, active []*v1.Pod) bool {
	wanted := f.hostPorts(pod)
	if len(wanted) == 0 {
		return false
	}
	return slices.ContainsFunc(active, func(other *v1.Pod) bool {
		for port := range f.hostPorts(other) {
			if wanted[port] {
				return true
			}
		}
		return false
	})
}

// hostPort is a port of the machine. The address is left out: a pod that binds one
// address only still shares the port.
type hostPort struct {
	protocol v1.Protocol
	port     int32
}

func (f Fitting) hostPorts(pod *v1.Pod) map[hostPort]bool {
	ports := map[hostPort]bool{}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].RestartPolicy == nil && !isRegular(pod, list[i].Name) {
				continue // an init container gives its ports back
			}
			for _, p := range list[i].Ports {
				number := p.HostPort
				if number == 0 && f.SharedPorts {
					number = p.ContainerPort
				}
				if number > 0 {
					ports[hostPort{cmp.Or(p.Protocol, v1.ProtocolTCP), number}] = true
				}
			}
		}
	}
	return ports
}
