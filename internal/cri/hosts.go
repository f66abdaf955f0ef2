package cri

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
)

const (
	maxLabel = 63

	managedHosts     = "# Kubernetes-managed hosts file.\n"
	managedHostHosts = "# Kubernetes-managed hosts file (host network).\n"
	localhostEntries = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
)

// hostname is the host name of a pod, and its domain.
func (r *Runtime) hostname(pod *v1.Pod) (name, domain string) {
	if pod.Spec.HostnameOverride != nil {
		return *pod.Spec.HostnameOverride, ""
	}
	name = cmp.Or(pod.Spec.Hostname, pod.Name)
	if len(name) > maxLabel {
		name = strings.TrimRight(name[:maxLabel], "-.")
	}
	if pod.Spec.Subdomain != "" {
		domain = fmt.Sprintf("%s.%s.svc.%s", pod.Spec.Subdomain, pod.Namespace, r.options.ClusterDomain)
		if isTrue(pod.Spec.SetHostnameAsFQDN) {
			name += "." + domain
		}
	}
	return name, domain
}

// writeHosts writes /etc/hosts of the pod's containers.
func (r *Runtime) writeHosts(p *pod) error {
	r.mu.Lock()
	ips := r.addressesOf(p)
	r.mu.Unlock()
	text, err := r.hostsFile(p.manifest, ips)
	if err != nil {
		return err
	}
	// Containers have the file mounted: it is written in its place, not replaced.
	if err := os.WriteFile(p.dir.hosts(), []byte(text), 0o644); err != nil {
		return err
	}
	return os.Chmod(p.dir.hosts(), 0o644)
}

func (r *Runtime) hostsFile(pod *v1.Pod, ips []string) (string, error) {
	var b strings.Builder
	if pod.Spec.HostNetwork {
		own, err := os.ReadFile("/etc/hosts")
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		b.WriteString(managedHostHosts)
		b.Write(own)
	} else {
		b.WriteString(managedHosts + localhostEntries)
		name, domain := r.hostname(pod)
		for _, ip := range ips {
			if short, _, _ := strings.Cut(name, "."); domain != "" {
				fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, short, domain, short)
			} else {
				fmt.Fprintf(&b, "%s\t%s\n", ip, name)
			}
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, alias := range pod.Spec.HostAliases {
			fmt.Fprintf(&b, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
		}
	}
	return b.String(), nil
}
