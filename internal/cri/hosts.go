package cri

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/podetc"
)

const (
	maxLabel    = 63
	maxHostname = 64 // of the kernel
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

// writeHosts writes /etc/hosts of the pod's containers. A container runtime makes a directory of a file that is missing when it is mounted.
func (r *Runtime) writeHosts(p *pod) error {
	r.mu.Lock()
	ips := r.addressesOf(p)
	r.mu.Unlock()
	text, err := r.hostsFile(p.manifest, ips)
	if err != nil {
		return err
	}
	if info, err := os.Lstat(p.dir.hosts()); err == nil && info.IsDir() {
		if err := os.Remove(p.dir.hosts()); err != nil {
			return err
		}
	}
	// Containers have the file mounted: it is written in its place, not replaced.
	if err := os.WriteFile(p.dir.hosts(), []byte(text), 0o644); err != nil {
		return err
	}
	return os.Chmod(p.dir.hosts(), 0o644)
}

func (r *Runtime) hostsFile(pod *v1.Pod, ips []string) (string, error) {
	if pod.Spec.HostNetwork {
		return podetc.HostsOfMachine(pod)
	}
	name, domain := r.hostname(pod)
	return podetc.Hosts(pod, ips, name, domain), nil
}
