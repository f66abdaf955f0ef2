package node

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Thresholds define when the machine is under pressure: when less than a threshold is available, as
// with the kubelet's eviction thresholds.
type Thresholds struct {
	MemoryAvailable uint64  // bytes
	DiskAvailable   float64 // share of the file system
	InodesFree      float64 // share of the file system
	PIDsAvailable   float64 // share of the maximum
	// Clear is how long all readings must be above a threshold before the pressure ends. Without
	// it, conditions and evictions of a machine near a threshold would flap.
	Clear time.Duration
}

// DefaultThresholds returns the thresholds of the kubelet, and 5% for process IDs.
func DefaultThresholds() Thresholds {
	return Thresholds{MemoryAvailable: 100 << 20, DiskAvailable: 0.10, InodesFree: 0.05, PIDsAvailable: 0.05, Clear: 5 * time.Minute}
}

func (t Thresholds) validate() error {
	for _, share := range []float64{t.DiskAvailable, t.InodesFree, t.PIDsAvailable} {
		if share < 0 || share >= 1 {
			return fmt.Errorf("node: threshold %v: want a share of at least 0 and below 1", share)
		}
	}
	if t.Clear < 0 {
		return errors.New("node: the time until pressure clears must not be negative")
	}
	return nil
}

// pressures remember when each threshold was last seen crossed; zero means never.
type pressures struct{ memory, disk, pid time.Time }

// after returns the pressures after one more reading.
func (p pressures) after(r Reading, t Thresholds, now time.Time) pressures {
	if r.MemoryAvailable < t.MemoryAvailable {
		p.memory = now
	}
	if below(r.DiskAvailable, r.DiskTotal, t.DiskAvailable) || below(r.InodesFree, r.Inodes, t.InodesFree) {
		p.disk = now
	}
	if below(r.PIDs-min(r.PIDsUsed, r.PIDs), r.PIDs, t.PIDsAvailable) {
		p.pid = now
	}
	return p
}

// decided replaces the pressures by the given conditions, which the eviction manager, say, has
// decided on.
func (p pressures) decided(conditions []v1.NodeConditionType, now time.Time) pressures {
	p.memory, p.disk = time.Time{}, time.Time{}
	for _, c := range conditions {
		p.set(c, now)
	}
	return p
}

// set records when a pressure was last observed.
func (p *pressures) set(c v1.NodeConditionType, now time.Time) {
	switch c {
	case v1.NodeMemoryPressure:
		p.memory = now
	case v1.NodeDiskPressure:
		p.disk = now
	case v1.NodePIDPressure:
		p.pid = now
	}
}

func below(available, total uint64, share float64) bool {
	return total > 0 && float64(available) < share*float64(total)
}

// remembered takes over the pressure that the Node already shows, so that a restart of
// statusd does not end it early.
func remembered(conditions []v1.NodeCondition, now time.Time) pressures {
	var p pressures
	for _, c := range conditions {
		if c.Status == v1.ConditionTrue {
			p.set(c.Type, now)
		}
	}
	return p
}

// findings are the inputs of the conditions.
type findings struct {
	pressures pressures
	unread    error // why the machine could not be read
	notReady  error // why the node is not ready
}

// conditions returns the conditions of the node. Transition times are kept from the previous
// conditions if the status is the same.
func conditions(f findings, clear time.Duration, before []v1.NodeCondition, now time.Time) []v1.NodeCondition {
	pressed := func(last time.Time) bool { return !last.IsZero() && now.Sub(last) < clear || last.Equal(now) }
	list := []v1.NodeCondition{
		pressureCondition(v1.NodeMemoryPressure, pressed(f.pressures.memory), f.unread,
			"KubeletHasInsufficientMemory", "kubelet has insufficient memory available",
			"KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		pressureCondition(v1.NodeDiskPressure, pressed(f.pressures.disk), f.unread,
			"KubeletHasDiskPressure", "kubelet has disk pressure",
			"KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		pressureCondition(v1.NodePIDPressure, pressed(f.pressures.pid), f.unread,
			"KubeletHasInsufficientPID", "kubelet has insufficient PID available",
			"KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		readyCondition(f.notReady),
	}
	at := metav1.NewTime(now.Truncate(time.Second)) // the API's precision
	for i := range list {
		c := &list[i]
		c.LastHeartbeatTime, c.LastTransitionTime = at, at
		if old := find(before, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return list
}

func pressureCondition(kind v1.NodeConditionType, pressed bool, unread error, yes, yesMessage, no, noMessage string) v1.NodeCondition {
	switch {
	case unread != nil:
		return v1.NodeCondition{Type: kind, Status: v1.ConditionUnknown, Reason: "MachineNotReadable", Message: unread.Error()}
	case pressed:
		return v1.NodeCondition{Type: kind, Status: v1.ConditionTrue, Reason: yes, Message: yesMessage}
	}
	return v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, Reason: no, Message: noMessage}
}

func readyCondition(notReady error) v1.NodeCondition {
	if notReady != nil {
		return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: cmp.Or(notReady.Error(), "not ready")}
	}
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
}

func find(conditions []v1.NodeCondition, kind v1.NodeConditionType) *v1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
