package cri

import (
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Bounds of resolv.conf, as the API has them.
const (
	maxServers  = 3
	maxSearches = 32
)

// dns is the resolver of a pod.
func (r *Runtime) dns(pod *v1.Pod) (*runtimeapi.DNSConfig, error) {
	config := &runtimeapi.DNSConfig{}
	host, err := readResolver(r.options.ResolvConf)
	if err != nil && pod.Spec.DNSPolicy != v1.DNSNone {
		return nil, err
	}
	switch {
	case pod.Spec.DNSPolicy == v1.DNSNone:
	case r.usesClusterDNS(pod):
		config.Servers = slices.Clone(r.options.ClusterDNS)
		config.Options = []string{"ndots:5"}
		if domain := r.options.ClusterDomain; domain != "" {
			config.Searches = []string{pod.Namespace + ".svc." + domain, "svc." + domain, domain}
		}
		config.Searches = append(config.Searches, host.Searches...)
	default:
		config = host
	}
	if own := pod.Spec.DNSConfig; own != nil {
		config.Servers = append(config.Servers, own.Nameservers...)
		config.Searches = append(config.Searches, own.Searches...)
		config.Options = mergeOptions(config.Options, own.Options)
	}
	config.Servers = firstOnes(config.Servers, maxServers)
	config.Searches = firstOnes(config.Searches, maxSearches)
	return config, nil
}

// usesClusterDNS reports whether a pod asks the DNS server of the cluster.
func (r *Runtime) usesClusterDNS(pod *v1.Pod) bool {
	if len(r.options.ClusterDNS) == 0 {
		return false
	}
	switch pod.Spec.DNSPolicy {
	case v1.DNSClusterFirstWithHostNet:
		return true
	case v1.DNSClusterFirst, "":
		return !pod.Spec.HostNetwork
	}
	return false
}

// firstOnes are the first distinct ones.
func firstOnes(all []string, most int) []string {
	var kept []string
	for _, one := range all {
		if len(kept) < most && !slices.Contains(kept, one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// mergeOptions has the options of a pod replace those of the same name.
func mergeOptions(options []string, own []v1.PodDNSConfigOption) []string {
	for _, o := range own {
		options = slices.DeleteFunc(slices.Clone(options), func(other string) bool {
			name, _, _ := strings.Cut(other, ":")
			return name == o.Name
		})
		text := o.Name
		if o.Value != nil && *o.Value != "" {
			text += ":" + *o.Value
		}
		options = append(options, text)
	}
	return options
}

// readResolver reads the resolver of the node. One that is missing has nothing.
func readResolver(file string) (*runtimeapi.DNSConfig, error) {
	config := &runtimeapi.DNSConfig{}
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return config, nil
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			config.Servers = append(config.Servers, fields[1])
		case "search", "domain":
			config.Searches = fields[1:]
		case "options":
			config.Options = append(config.Options, fields[1:]...)
		}
	}
	return config, err
}
