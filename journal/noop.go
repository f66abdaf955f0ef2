package journal

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Noop is a journal that takes everything and remembers nothing.
type Noop struct{}

// NewNoop returns a journal that remembers nothing.
func NewNoop() Noop { return Noop{} }

func (Noop) GetContainerResourceAllocation(types.UID, string) (v1.ResourceRequirements, bool) {
	return v1.ResourceRequirements{}, false
}

func (Noop) GetPodAllocation(types.UID) (podstatus.Allocation, bool) {
	return podstatus.Allocation{}, false
}

func (Noop) GetPodResourceAllocation() map[types.UID]podstatus.Allocation {
	return map[types.UID]podstatus.Allocation{}
}

func (Noop) GetPodResizeStatus(types.UID) (ResizeStatus, bool) { return "", false }

func (Noop) GetResizeStatus() map[types.UID]ResizeStatus {
	return map[types.UID]ResizeStatus{}
}

func (Noop) SetContainerResourceAllocation(types.UID, string, v1.ResourceRequirements) error {
	return nil
}

func (Noop) SetPodAllocation(types.UID, podstatus.Allocation) error { return nil }

func (Noop) SetPodResourceAllocation(map[types.UID]podstatus.Allocation) error { return nil }

func (Noop) SetPodResizeStatus(types.UID, ResizeStatus) error { return nil }

func (Noop) SetResizeStatus(map[types.UID]ResizeStatus) error { return nil }

func (Noop) Delete(types.UID, string) error { return nil }

func (Noop) ClearState() error { return nil }

func (Noop) ResizeConditions(types.UID) (podstatus.ResizeConditions, bool) {
	return podstatus.ResizeConditions{}, false
}

func (Noop) AllResizeConditions() map[types.UID]podstatus.ResizeConditions {
	return map[types.UID]podstatus.ResizeConditions{}
}

func (Noop) SetResizeConditions(types.UID, podstatus.ResizeConditions) error { return nil }

func (Noop) Finals() map[types.UID]podstatus.Final { return map[types.UID]podstatus.Final{} }

func (Noop) SetFinal(types.UID, podstatus.Final) error { return nil }

func (Noop) DeleteFinal(types.UID) error { return nil }

func (Noop) Termination(string) (v1.ContainerStateTerminated, bool) {
	return v1.ContainerStateTerminated{}, false
}

func (Noop) RecordTermination(types.UID, string, v1.ContainerStateTerminated) error { return nil }

func (Noop) RetainTerminations(types.UID, func(string) bool) error { return nil }

func (Noop) DeleteTerminations(types.UID) error { return nil }

func (Noop) RemovePod(types.UID) error { return nil }

func (Noop) RetainPods(func(types.UID) bool) (int, error) { return 0, nil }

// Close does nothing.
func (Noop) Close() error { return nil }
