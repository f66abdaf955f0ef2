package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/internal/text"
)

// Left are the free resources of a node at some time: bytes of memory and of disk, inodes, process IDs. Unknown values
// are 0.
type Left struct {
	At                         time.Time
	Memory, Disk, Inodes, PIDs uint64
}

// nearLeft is how far from a moment a reading still says what was left then.
const nearLeft = time.Minute

// Moments returns the times at which the free resources of the node matter: when the pod was evicted, and when its
// containers were OOM-killed. [Node.Left] needs a reading near each of them.
func Moments(f Facts) (moments []time.Time) {
	if f.status().Reason == "Evicted" {
		moments = append(moments, evictedAt(f))
	}
	for _, s := range slices.Concat(f.status().InitContainerStatuses, f.status().ContainerStatuses) {
		for _, t := range []*v1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if t != nil && t.Reason == "OOMKilled" {
				moments = append(moments, t.FinishedAt.Time)
			}
		}
	}
	return slices.DeleteFunc(moments, time.Time.IsZero)
}

// evictedAt is when the node decided to evict the pod, zero if that is not known.
func evictedAt(f Facts) time.Time {
	if c := f.condition(v1.DisruptionTarget); c != nil && c.Status == v1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	if end := ended(f); end != nil {
		return *end
	}
	return time.Time{}
}

// left is what the node had left at a time, nil if that is not known.
func (f Facts) left(at time.Time) *Left {
	var best *Left
	for i := range f.Node.Left {
		l := &f.Node.Left[i]
		if d := l.At.Sub(at).Abs(); d <= nearLeft && (best == nil || d < best.At.Sub(at).Abs()) {
			best = l
		}
	}
	return best
}

// lowOn is how nodes begin the message of an eviction, with the resource; available follows it, from Kubernetes 1.26 on.
var (
	lowOn     = regexp.MustCompile(`^The node was low on resource: ([a-z-]+)\.`)
	available = regexp.MustCompile(`\bavailable: ([0-9]+(?:\.[0-9]+)?[A-Za-z]*)`)
)

// whatWasLeft is what the node had left of the resource for which it has evicted the pod: by the message, or else by what was read
// then. It is empty if that is not known.
func whatWasLeft(f Facts) string {
	message := f.status().Message
	name := lowOn.FindStringSubmatch(message)
	if name == nil {
		return ""
	}
	if found := available.FindStringSubmatch(message); found != nil {
		if q, err := resource.ParseQuantity(found[1]); err == nil && q.Sign() >= 0 {
			return amount(name[1], uint64(q.Value()))
		}
	}
	l := f.left(evictedAt(f))
	if l == nil {
		return ""
	}
	n := map[string]uint64{"memory": l.Memory, "ephemeral-storage": l.Disk, "inodes": l.Inodes, "pids": l.PIDs}[name[1]]
	if n == 0 {
		return ""
	}
	return amount(name[1], n)
}

// amount says how much of a resource: "80 MiB of memory", "12 process IDs".
func amount(name string, n uint64) string {
	switch name {
	case "memory":
		return text.Bytes(n) + " of memory"
	case "ephemeral-storage":
		return text.Bytes(n) + " of disk"
	case "pids":
		return fmt.Sprintf("%d process IDs", n)
	}
	return fmt.Sprintf("%d %s", n, name)
}

// shortOfMemory says what a container that was killed for lack of memory was allowed, and what the node had left then: both show
// whether it or the node was short. It is empty if neither is known.
func (f Facts) shortOfMemory(name string, t *v1.ContainerStateTerminated) string {
	if t.Reason != "OOMKilled" {
		return ""
	}
	var known []string
	limit := f.memoryLimit(name)
	if limit != "" {
		known = append(known, limit)
	}
	if l := f.left(t.FinishedAt.Time); l != nil && l.Memory > 0 {
		if limit == "" {
			known = append(known, "it has no limit")
		}
		known = append(known, "the node had "+text.Bytes(l.Memory)+" left")
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + strings.Join(known, ", ") + ")"
}

// memoryLimit says what a container is allowed: "its limit is 64 MiB". It is empty if neither it nor its pod has a limit.
func (f Facts) memoryLimit(name string) string {
	for _, c := range slices.Concat(f.Pod.Spec.InitContainers, f.Pod.Spec.Containers) {
		if limit, limited := c.Resources.Limits[v1.ResourceMemory]; c.Name == name && limited {
			return "its limit is " + quantity(limit)
		}
	}
	if r := f.Pod.Spec.Resources; r != nil {
		if limit, limited := r.Limits[v1.ResourceMemory]; limited {
			return "the limit of its pod is " + quantity(limit)
		}
	}
	return ""
}

func quantity(q resource.Quantity) string { return text.Bytes(uint64(max(q.Value(), 0))) }
