package podrules

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// resourceList writes the resources that differ; removed resources are null.
func (p *patchWriter) resourceList(key string, base, desired v1.ResourceList) {
	if sameResourceList(base, desired) {
		return
	}
	p.key(key)
	if len(desired) == 0 {
		p.null()
		return
	}
	p.open('{')
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		quantity := desired[name]
		if old, ok := base[name]; ok && old.Cmp(quantity) == 0 {
			continue
		}
		p.quotedKey(string(name))
		p.value(quantity)
	}
	for _, name := range slices.Sorted(maps.Keys(base)) {
		if _, ok := desired[name]; !ok {
			p.quotedKey(string(name))
			p.null()
		}
	}
	p.close('}')
}

// requirements writes the difference of two pod-level resource requirements. Present but
// empty ones are not the same as none.
func (p *patchWriter) requirements(key string, base, desired *v1.ResourceRequirements) {
	if sameRequirements(base, desired) && (base == nil || sameUnwritten(base, desired)) {
		return
	}
	p.key(key)
	switch {
	case desired == nil:
		p.null()
		return
	case base == nil:
		p.value(desired)
		return
	}
	p.open('{')
	p.resourceList("limits", base.Limits, desired.Limits)
	p.resourceList("requests", base.Requests, desired.Requests)
	if !slices.Equal(base.Claims, desired.Claims) {
		p.key("claims")
		listOrNull(p, desired.Claims)
	}
	writeUnwritten(p, base, desired)
	p.close('}')
}
