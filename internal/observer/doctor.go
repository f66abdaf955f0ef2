package observer

import (
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/doctor"
)

// Examined returns the subject of statusd doctor for statusd observe with this config.
func (c Config) Examined() doctor.Subject {
	s := doctor.Subject{
		StateDir: c.StateDir, ConfigProblem: CheckConfig(c), RuntimeEndpoint: c.runtimeEndpoint(),
		Addresses: []string{c.HealthzBindAddress, c.MetricsBindAddress}, Socket: c.QuerySocketPath(), Unit: "statusd-observe.service",
	}
	s.NodeName, _ = c.nodeName() // the config's check reports it
	s.Client, s.ClientProblem = c.examinedClient()
	s.Rights = append(doctor.Watching(s.NodeName),
		authorization.ResourceAttributes{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Name: s.NodeName})
	if c.Outputs.Events {
		s.Rights = append(s.Rights, authorization.ResourceAttributes{Verb: "create", Resource: "events", Namespace: "default"})
	}
	if c.Outputs.Conditions {
		s.Rights = append(s.Rights, authorization.ResourceAttributes{Verb: "patch", Resource: "nodes", Subresource: "status", Name: s.NodeName})
	}
	return s
}

// examinedClient uses the same credentials as the observer would.
func (c Config) examinedClient() (*rest.Config, error) {
	o := Observer{config: c}
	return o.restConfig()
}
