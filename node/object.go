package node

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kubernetesVersion is the release whose behavior and API this code follows. The node's version
// must parse as a release, since version skew is computed from it.
const kubernetesVersion = "v1.36.3"

// versionInfix is what the version of each node of statusd contains.
const versionInfix = "-statusd."

// kubeletVersion returns the node's version with the name and version of statusd.
func kubeletVersion(version string) string {
	version = strings.TrimPrefix(version, "v")
	if version == "" {
		version = "dev"
	}
	version = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, version)
	return kubernetesVersion + versionInfix + version
}

// status returns the desired status of the Node, without conditions.
func (o *Options) status(r Reading) v1.NodeStatus {
	capacity := v1.ResourceList{
		v1.ResourceCPU:              *resource.NewQuantity(int64(r.CPUs), resource.DecimalSI),
		v1.ResourceMemory:           *resource.NewQuantity(int64(r.MemoryTotal), resource.BinarySI),
		v1.ResourceEphemeralStorage: *resource.NewQuantity(int64(r.DiskTotal), resource.BinarySI),
		v1.ResourcePods:             *resource.NewQuantity(int64(o.MaxPods), resource.DecimalSI),
	}
	return v1.NodeStatus{
		Capacity:        capacity,
		Allocatable:     o.allocatable(capacity, r),
		Addresses:       o.addresses(r),
		DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: o.Port}},
		NodeInfo: v1.NodeSystemInfo{
			MachineID:               r.MachineID,
			SystemUUID:              r.SystemUUID,
			BootID:                  r.BootID,
			KernelVersion:           r.KernelVersion,
			OSImage:                 r.OSImage,
			ContainerRuntimeVersion: o.RuntimeVersion,
			KubeletVersion:          kubeletVersion(o.Version),
			OperatingSystem:         runtime.GOOS,
			Architecture:            runtime.GOARCH,
		},
	}
}

// allocatable is the capacity minus reserved resources and thresholds: pods that use all of it must
// not cause node pressure.
func (o *Options) allocatable(capacity v1.ResourceList, r Reading) v1.ResourceList {
	kept := v1.ResourceList{
		v1.ResourceMemory:           *resource.NewQuantity(int64(o.Thresholds.MemoryAvailable), resource.BinarySI),
		v1.ResourceEphemeralStorage: *resource.NewQuantity(int64(o.Thresholds.DiskAvailable*float64(r.DiskTotal)), resource.BinarySI),
	}
	allocatable := v1.ResourceList{}
	for name, q := range capacity {
		left := q.DeepCopy()
		left.Sub(kept[name])
		left.Sub(o.Reserved[name])
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, q.Format)
		}
		allocatable[name] = left
	}
	return allocatable
}

func (o *Options) addresses(r Reading) []v1.NodeAddress {
	ips := o.Addresses
	if len(ips) == 0 {
		ips = r.Addresses
	}
	var addresses []v1.NodeAddress
	for _, ip := range ips {
		addresses = append(addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	return append(addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: o.Name})
}

// object is the Node to create.
func (o *Options) object(r Reading, conditions []v1.NodeCondition) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: o.labels()},
		Spec:       v1.NodeSpec{Taints: slices.Clone(o.Taints)},
		Status:     o.status(r),
	}
	node.Status.Conditions = conditions
	if o.Images != nil {
		node.Status.Images = o.Images()
	}
	if o.Configure != nil {
		o.Configure(node)
	}
	return node
}

// timed gives the conditions that Configure has added or changed the times of the API's: a transition is when the
// status changes.
func timed(conditions, before []v1.NodeCondition, now time.Time) []v1.NodeCondition {
	for i := range conditions {
		c := &conditions[i]
		old := find(before, c.Type)
		if c.LastHeartbeatTime = metav1.NewTime(now); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		} else if old != nil || c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = metav1.NewTime(now)
		}
	}
	return conditions
}

// missingLabels returns the labels in want that are missing or different in have.
func missingLabels(want, have map[string]string) map[string]string {
	missing := map[string]string{}
	for key, value := range want {
		if old, ok := have[key]; !ok || old != value {
			missing[key] = value
		}
	}
	return missing
}

// missingTaints returns the taints in want that are missing in have.
func missingTaints(want, have []v1.Taint) []v1.Taint {
	return slices.DeleteFunc(slices.Clone(want), func(w v1.Taint) bool {
		return slices.ContainsFunc(have, func(h v1.Taint) bool { return h.MatchTaint(&w) && h.Value == w.Value })
	})
}

// isUpToDate reports whether the API's status holds everything that this node reports. Heartbeats
// and fields of other writers do not count.
func isUpToDate(api, want v1.NodeStatus) bool {
	for _, c := range want.Conditions {
		old := find(api.Conditions, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
			return false
		}
	}
	return holds(api.Capacity, want.Capacity) && holds(api.Allocatable, want.Allocatable) &&
		equality.Semantic.DeepEqual(api.Addresses, want.Addresses) &&
		api.DaemonEndpoints == want.DaemonEndpoints && sameInfo(api.NodeInfo, want.NodeInfo) &&
		(len(want.Images) == 0 || equality.Semantic.DeepEqual(api.Images, want.Images))
}

func holds(have, want v1.ResourceList) bool {
	for name, q := range want {
		if old, ok := have[name]; !ok || old.Cmp(q) != 0 {
			return false
		}
	}
	return true
}

func sameInfo(a, b v1.NodeSystemInfo) bool {
	a.Swap, b.Swap = nil, nil // not ours
	return equality.Semantic.DeepEqual(a, b)
}

// statusPatch returns the patch of our part of the status. Lists and maps merge by key, so
// conditions and resources of others stay; addresses are replaced as a whole, because two internal
// addresses have the same key. With the UID the patch fails on a re-created Node of the same name.
func statusPatch(uid types.UID, s v1.NodeStatus) ([]byte, error) {
	addresses := []any{map[string]string{"$patch": "replace"}}
	for _, a := range s.Addresses {
		addresses = append(addresses, a)
	}
	return marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status": map[string]any{
			"capacity":        s.Capacity,
			"allocatable":     s.Allocatable,
			"conditions":      s.Conditions,
			"addresses":       addresses,
			"daemonEndpoints": s.DaemonEndpoints,
			"nodeInfo":        s.NodeInfo,
		},
	})
}

func labelPatch(uid types.UID, labels, annotations map[string]string, providerID string) ([]byte, error) {
	patch := map[string]any{"metadata": map[string]any{"uid": uid, "labels": labels, "annotations": annotations}}
	if providerID != "" {
		patch["spec"] = map[string]any{"providerID": providerID}
	}
	return marshal(patch)
}

func marshal(patch map[string]any) ([]byte, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("node: build patch: %w", err)
	}
	return data, nil
}
