package cri

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/podetc"
)

// dns is the resolver of a pod.
func (r *Runtime) dns(pod *v1.Pod) (*runtimeapi.DNSConfig, error) {
	file := r.options.ResolvConf
	if file == "" { // chosen again for each pod: the machine may have got another network
		file = podetc.MachineFile("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
	}
	resolver, err := podetc.NewResolver(pod, podetc.Cluster{Servers: r.options.ClusterDNS, Domain: r.options.ClusterDomain}, file)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.DNSConfig{Servers: resolver.Servers, Searches: resolver.Searches, Options: resolver.Options}, nil
}
