package run

import (
	authorization "k8s.io/api/authorization/v1"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/doctor"
	"github.com/statusd/statusd/internal/process"
)

// Examined returns the subject of statusd doctor for statusd run with this config.
func (c Config) Examined() doctor.Subject {
	s := doctor.Subject{
		StateDir: c.StateDir, Root: true, Cgroups: true, OwnsLease: true, ConfigProblem: agent.CheckConfig(c.Config),
		Addresses: []string{c.HealthzBindAddress, c.Server.BindAddress}, Socket: c.QuerySocketPath(), Unit: "statusd.service",
	}
	s.NodeName, _ = process.NodeName(c.NodeName) // the config's check reports it
	if c.Runtime == RuntimeCRI {
		s.RuntimeEndpoint = c.ContainerRuntimeEndpoint
	}
	if c.Kubeconfig == "" {
		return s
	}
	if s.Client, s.ClientProblem = process.LoadKubeconfig(c.Kubeconfig); s.ClientProblem != nil {
		return s
	}
	s.Rights = append(doctor.Watching(s.NodeName),
		authorization.ResourceAttributes{Verb: "patch", Resource: "nodes", Subresource: "status", Name: s.NodeName},
		authorization.ResourceAttributes{Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "default"},
		authorization.ResourceAttributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Name: s.NodeName},
		authorization.ResourceAttributes{Verb: "create", Resource: "events", Namespace: "default"},
	)
	return s
}
