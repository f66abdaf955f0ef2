package podetc

import (
	"net/netip"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Bounds of resolv.conf, as the API has them.
const (
	maxServers  = 3
	maxSearches = 32
)

// Resolver is the content of resolv.conf.
type Resolver struct {
	Servers, Searches, Options []string
}

// Cluster is the DNS server of a cluster. Without servers, pods with cluster DNS use the resolver of the
// machine.
type Cluster struct {
	Servers []string
	Domain  string
}

// NewResolver is the resolver of a pod; file is resolv.conf of the machine.
func NewResolver(pod *v1.Pod, cluster Cluster, file string) (Resolver, error) {
	host, err := readResolver(file)
	if err != nil && pod.Spec.DNSPolicy != v1.DNSNone {
		return Resolver{}, err
	}
	var r Resolver
	switch {
	case pod.Spec.DNSPolicy == v1.DNSNone:
	case usesCluster(pod, cluster):
		r.Servers = slices.Clone(cluster.Servers)
		r.Options = []string{"ndots:5"}
		if domain := cluster.Domain; domain != "" {
			r.Searches = []string{pod.Namespace + ".svc." + domain, "svc." + domain, domain}
		}
		r.Searches = append(r.Searches, host.Searches...)
	default:
		r = host
	}
	if own := pod.Spec.DNSConfig; own != nil {
		r.Servers = append(r.Servers, own.Nameservers...)
		r.Searches = append(r.Searches, own.Searches...)
		r.Options = mergeOptions(r.Options, own.Options)
	}
	r.Servers = firstOnes(r.Servers, maxServers)
	r.Searches = firstOnes(r.Searches, maxSearches)
	return r, nil
}

// MachineFile chooses the resolver configuration of the machine for pods with a network of their own: file, or upstream if file names local servers alone,
// which no such pod reaches. systemd-resolved has both files: the first names itself, the second the servers that it asks.
func MachineFile(file, upstream string) string {
	own, err := readResolver(file)
	if err != nil || len(own.Servers) == 0 || slices.ContainsFunc(own.Servers, func(s string) bool { return !isLocal(s) }) {
		return file
	}
	asked, err := readResolver(upstream)
	if err != nil || !slices.ContainsFunc(asked.Servers, func(s string) bool { return !isLocal(s) }) {
		return file
	}
	return upstream
}

func isLocal(server string) bool {
	address, err := netip.ParseAddr(server)
	return err == nil && address.IsLoopback()
}

// File is the content of resolv.conf.
func (r Resolver) File() string {
	var b strings.Builder
	for _, server := range r.Servers {
		b.WriteString("nameserver " + server + "\n")
	}
	writeWords(&b, "search", r.Searches)
	writeWords(&b, "options", r.Options)
	return b.String()
}

func writeWords(b *strings.Builder, name string, words []string) {
	if len(words) > 0 {
		b.WriteString(name + " " + strings.Join(words, " ") + "\n")
	}
}

// usesCluster reports whether a pod asks the DNS server of the cluster.
func usesCluster(pod *v1.Pod, cluster Cluster) bool {
	if len(cluster.Servers) == 0 {
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

// readResolver reads the resolver of the machine. A missing file means an empty resolver.
func readResolver(file string) (Resolver, error) {
	var r Resolver
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return r, nil
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			r.Servers = append(r.Servers, fields[1])
		case "search", "domain":
			r.Searches = fields[1:]
		case "options":
			r.Options = append(r.Options, fields[1:]...)
		}
	}
	return r, err
}
