package node

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What a Node may be configured with. The errors say what is wrong and what would be right; which
// option or field it is, the caller adds.

// CheckLabel returns an error for an invalid label, or a label that NodeRestriction does not let a
// node set on itself.
func CheckLabel(key, value string) error {
	if reasons := validation.IsQualifiedName(key); len(reasons) > 0 {
		return errors.New(strings.Join(reasons, "; "))
	}
	if reasons := validation.IsValidLabelValue(value); len(reasons) > 0 {
		return fmt.Errorf("%q: %s", value, strings.Join(reasons, "; "))
	}
	if !mayLabel(key) {
		return errors.New("the API server lets no node give it to itself; have an administrator set it, or use a prefix of your own or node.kubernetes.io/")
	}
	return nil
}

// CheckTaint returns an error for an invalid taint.
func CheckTaint(t v1.Taint) error {
	effects := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}
	if len(validation.IsQualifiedName(t.Key)) > 0 || len(validation.IsValidLabelValue(t.Value)) > 0 || !slices.Contains(effects, t.Effect) {
		return fmt.Errorf("%q: want KEY[=VALUE]:EFFECT with effect NoSchedule, PreferNoSchedule or NoExecute", t.ToString())
	}
	return nil
}

// CheckAddress returns an error if address is not an IP address.
func CheckAddress(address string) error {
	if net.ParseIP(address) == nil {
		return fmt.Errorf("%q is not an IP address", address)
	}
	return nil
}

// CheckReserved returns an error for the reservation of a resource that nodes do not have, or of a
// negative quantity.
func CheckReserved(name v1.ResourceName, q resource.Quantity) error {
	switch name {
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods:
	default:
		return errors.New("no such resource; want cpu, memory, ephemeral-storage or pods")
	}
	if q.Sign() < 0 {
		return fmt.Errorf("%q: want a quantity of at least 0, such as 500m or 1Gi", q.String())
	}
	return nil
}

// mayLabel reports whether NodeRestriction lets a node set a label on itself.
func mayLabel(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	if !found || !inDomain(prefix, "kubernetes.io") && !inDomain(prefix, "k8s.io") {
		return true
	}
	if inDomain(prefix, v1.LabelNamespaceSuffixKubelet) || inDomain(prefix, v1.LabelNamespaceSuffixNode) {
		return true
	}
	switch key {
	case v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
		v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return true
	}
	return false
}

func inDomain(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }
