package podetc

import (
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
)

const (
	managedHosts     = "# Kubernetes-managed hosts file.\n"
	managedHostHosts = "# Kubernetes-managed hosts file (host network).\n"
	localhostEntries = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
)

// Hosts is the hosts file of a pod with a network of its own: its addresses have its name.
func Hosts(pod *v1.Pod, ips []string, name, domain string) string {
	var b strings.Builder
	b.WriteString(managedHosts + localhostEntries)
	for _, ip := range ips {
		if short, _, _ := strings.Cut(name, "."); domain != "" {
			fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, short, domain, short)
		} else {
			fmt.Fprintf(&b, "%s\t%s\n", ip, name)
		}
	}
	addAliases(&b, pod)
	return b.String()
}

// HostsOfMachine is the hosts file of a pod on the network of the machine: the machine's, with the aliases of the pod.
func HostsOfMachine(pod *v1.Pod) (string, error) {
	own, err := os.ReadFile("/etc/hosts")
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	var b strings.Builder
	b.WriteString(managedHostHosts)
	b.Write(own)
	addAliases(&b, pod)
	return b.String(), nil
}

func addAliases(b *strings.Builder, pod *v1.Pod) {
	if len(pod.Spec.HostAliases) == 0 {
		return
	}
	b.WriteString("\n# Entries added by HostAliases.\n")
	for _, alias := range pod.Spec.HostAliases {
		fmt.Fprintf(b, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
}
