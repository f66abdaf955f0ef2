package podrules

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var errNoUID = errors.New("the pod's UID is empty, so that the patch could hit another pod of the same name")

// Patch returns the strategic merge patch for the status subresource that turns base into desired,
// or nil if there is nothing to send (P2). The patch contains the UID, and so fails on a re-created
// pod of the same name (P1). It contains no resource version: the last writer of a field wins (P3).
// See [Ownership.PatchAt] for a patch with a resource version.
//
// The patch has the form of a two-way strategic merge (P4): conditions merge by type and addresses
// by IP, container statuses are replaced as a whole, a removed field is null. Patch differs from a
// two-way merge in three cases: foreign conditions and the claim statuses are never part of the
// patch; an emptied list of conditions is deleted one by one, because the API may have foreign
// conditions that are missing in base; and a different order of conditions alone yields no patch.
func Patch(uid types.UID, base, desired *v1.PodStatus) ([]byte, error) {
	return Ownership{}.Patch(uid, base, desired)
}

// Patch is [Patch] with this table.
func (o Ownership) Patch(uid types.UID, base, desired *v1.PodStatus) ([]byte, error) {
	return o.PatchAt(uid, "", base, desired)
}

// PatchAt is [Ownership.Patch] for a write that must not overwrite changes that are missing in
// base: unless the version is empty, the API server answers 409 if the pod has another resource
// version.
func (o Ownership) PatchAt(uid types.UID, version string, base, desired *v1.PodStatus) ([]byte, error) {
	if uid == "" {
		return nil, fmt.Errorf("pod status patch: %w", errNoUID)
	}
	p := patchWriter{own: o, jsonWriter: jsonWriter{buf: make([]byte, 0, 1024)}}
	p.open('{')
	p.key("metadata")
	p.open('{')
	p.key("uid")
	p.string(string(uid))
	if version != "" {
		p.key("resourceVersion")
		p.string(version)
	}
	p.close('}')
	p.key("status")
	p.open('{')
	start := len(p.buf)
	p.status(base, desired)
	if len(p.buf) == start {
		return nil, nil
	}
	p.close('}')
	p.close('}')
	if p.err != nil {
		return nil, fmt.Errorf("pod status patch for pod %s: %w", uid, p.err)
	}
	return p.buf, nil
}

// patchWriter writes those members of a status that differ.
type patchWriter struct {
	jsonWriter
	own Ownership
}

func (p *patchWriter) status(base, desired *v1.PodStatus) {
	p.conditions(base.Conditions, desired.Conditions)
	p.ints("observedGeneration", base.ObservedGeneration, desired.ObservedGeneration)
	p.strings("phase", string(base.Phase), string(desired.Phase))
	p.strings("reason", base.Reason, desired.Reason)
	p.strings("message", base.Message, desired.Message)
	p.strings("nominatedNodeName", base.NominatedNodeName, desired.NominatedNodeName)
	p.strings("hostIP", base.HostIP, desired.HostIP)
	p.addresses("hostIPs", ips(base.HostIPs), ips(desired.HostIPs))
	p.strings("podIP", base.PodIP, desired.PodIP)
	p.addresses("podIPs", ips(base.PodIPs), ips(desired.PodIPs))
	p.times("startTime", orZero(base.StartTime), orZero(desired.StartTime))
	p.containers("initContainerStatuses", base.InitContainerStatuses, desired.InitContainerStatuses)
	p.containers("containerStatuses", base.ContainerStatuses, desired.ContainerStatuses)
	p.containers("ephemeralContainerStatuses", base.EphemeralContainerStatuses, desired.EphemeralContainerStatuses)
	p.strings("qosClass", string(base.QOSClass), string(desired.QOSClass))
	p.strings("resize", string(base.Resize), string(desired.Resize))
	p.resourceList("allocatedResources", base.AllocatedResources, desired.AllocatedResources)
	p.requirements("resources", base.Resources, desired.Resources)
	writeUnwritten(p, base, desired)
}

func (p *patchWriter) strings(key, base, desired string) {
	if sameText(base, desired) {
		return
	}
	p.key(key)
	if desired == "" {
		p.null()
		return
	}
	p.string(desired)
}

func (p *patchWriter) ints(key string, base, desired int64) {
	if base == desired {
		return
	}
	p.key(key)
	if desired == 0 {
		p.null()
		return
	}
	p.int(desired)
}

// times compares by the second: the API stores no more.
func (p *patchWriter) times(key string, base, desired metav1.Time) {
	if asStored.sameTime(base, desired) {
		return
	}
	p.key(key)
	p.time(desired)
}

// containers replaces a list of container statuses as a whole.
func (p *patchWriter) containers(key string, base, desired []v1.ContainerStatus) {
	if asStored.sameStatuses(base, desired) {
		return
	}
	p.key(key)
	listOrNull(p, desired)
}

// listOrNull writes a list that is replaced as a whole; an empty one goes away.
func listOrNull[T any](p *patchWriter, list []T) {
	if len(list) == 0 {
		p.null()
		return
	}
	p.value(list)
}
