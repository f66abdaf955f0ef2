package podrules

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// conditions writes the owned and shared conditions that differ: of a changed one the fields
// that changed, a new one whole, and a `$patch: delete` for an owned one that is not desired.
func (p *patchWriter) conditions(base, desired []v1.PodCondition) {
	start := len(p.buf)
	p.key("conditions")
	p.open('[')
	list := len(p.buf)
	for i := range desired {
		if p.own.isLastOfType(desired, i) {
			p.condition(base, &desired[i])
		}
	}
	for i := range base {
		if p.own.IsOwned(base[i].Type) && p.own.isLastOfType(base, i) && LastOfType(desired, base[i].Type) == nil {
			p.deleteElement("type", string(base[i].Type))
		}
	}
	if len(p.buf) == list {
		p.buf = p.buf[:start]
		return
	}
	p.close(']')
	if len(base) > 0 {
		p.conditionOrder(desired)
	}
}

func (p *patchWriter) condition(base []v1.PodCondition, desired *v1.PodCondition) {
	old := LastOfType(base, desired.Type)
	if old == nil {
		p.value(desired)
		return
	}
	start := len(p.buf)
	p.open('{')
	fields := len(p.buf)
	p.times("lastProbeTime", old.LastProbeTime, desired.LastProbeTime)
	p.times("lastTransitionTime", old.LastTransitionTime, desired.LastTransitionTime)
	p.strings("message", old.Message, desired.Message)
	p.ints("observedGeneration", old.ObservedGeneration, desired.ObservedGeneration)
	p.strings("reason", old.Reason, desired.Reason)
	p.strings("status", string(old.Status), string(desired.Status))
	writeUnwritten(p, old, desired)
	changed := len(p.buf) > fields
	p.key("type")
	p.string(string(desired.Type))
	p.close('}')

	repeated := FindCondition(base, desired.Type) != old
	switch {
	case repeated && (changed || p.own.IsOwned(desired.Type)):
		// The API permits a type twice, but a merge by type reaches only one of the two.
		p.buf = p.buf[:start]
		p.deleteElement("type", string(desired.Type))
		p.value(desired)
	case !changed:
		p.buf = p.buf[:start]
	}
}

// conditionOrder gives the API server the order of all conditions that we know of. Those
// that it alone knows keep their place.
func (p *patchWriter) conditionOrder(desired []v1.PodCondition) {
	p.key("$setElementOrder/conditions")
	p.open('[')
	for i := range desired {
		if LastOfType(desired, desired[i].Type) == &desired[i] {
			p.element("type", string(desired[i].Type))
		}
	}
	p.close(']')
}

// addresses writes a list that merges by IP. Unlike that of conditions its order counts: the
// first address is the pod's main one.
func (p *patchWriter) addresses(key string, base, desired []string) {
	switch {
	case slices.Equal(base, desired):
		return
	case len(desired) == 0:
		p.key(key)
		p.null()
		return
	}
	start := len(p.buf)
	p.key(key)
	p.open('[')
	list := len(p.buf)
	for _, ip := range desired {
		if !slices.Contains(base, ip) {
			p.element("ip", ip)
		}
	}
	for _, ip := range base {
		if !slices.Contains(desired, ip) {
			p.deleteElement("ip", ip)
		}
	}
	if len(p.buf) == list {
		p.buf = p.buf[:start]
	} else {
		p.close(']')
	}
	if len(base) > 0 {
		p.key("$setElementOrder/" + key)
		p.open('[')
		for _, ip := range desired {
			p.element("ip", ip)
		}
		p.close(']')
	}
}

// ips lists the addresses of two types that differ in name only.
func ips[T v1.PodIP | v1.HostIP](list []T) []string {
	if len(list) == 0 {
		return nil
	}
	ips := make([]string, len(list))
	for i, address := range list {
		ips[i] = v1.PodIP(address).IP
	}
	return ips
}

// element writes an element of a merge list that says no more than its key.
func (p *patchWriter) element(key, value string) {
	p.open('{')
	p.key(key)
	p.string(value)
	p.close('}')
}

// deleteElement makes the API server drop an element of a merge list.
func (p *patchWriter) deleteElement(key, value string) {
	p.open('{')
	p.key("$patch")
	p.string("delete")
	p.key(key)
	p.string(value)
	p.close('}')
}
