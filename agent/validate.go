package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/node"
)

// Validate returns all invalid values, each with the path of its field. Validate reads no files:
// see [CheckConfig].
func (c *Config) Validate() error { return c.validate(false) }

// validate is Validate; joined means that the program has its own connection to the API server.
func (c *Config) validate(joined bool) error {
	wrong, problems := process.Problems()
	if c.NodeName != "" {
		if err := process.CheckNodeName(c.NodeName); err != nil {
			wrong("nodeName", "%v", err)
		}
	}
	if c.StateDir == "" {
		wrong("stateDir", "is empty; name a directory that outlives a restart, such as /var/lib/statusd")
	}
	if c.BootstrapKubeconfig != "" && c.Kubeconfig == "" {
		wrong("bootstrapKubeconfig", "needs kubeconfig, the file to write")
	}
	if joined && c.Kubeconfig != "" {
		wrong("kubeconfig", "is set, and so is Options.RESTConfig; want one")
	}
	if !joined && c.Kubeconfig == "" && c.Manifests == "" {
		wrong("manifests", "is empty, and so is kubeconfig: there is nowhere for pods to come from")
	}
	if c.HealthzBindAddress != "" {
		if err := process.CheckAddress(c.HealthzBindAddress); err != nil {
			wrong("healthzBindAddress", "%v", err)
		}
	}
	if c.ShutdownTimeout <= 0 {
		wrong("shutdownTimeout", "%v: want a time above zero, such as 20s", c.ShutdownTimeout)
	}
	if c.ShutdownGracePeriod < 0 {
		wrong("shutdownGracePeriod", "%v: want 0 or more", c.ShutdownGracePeriod)
	}
	if c.ShutdownGracePeriodCriticalPods < 0 || c.ShutdownGracePeriodCriticalPods > max(0, c.ShutdownGracePeriod) {
		wrong("shutdownGracePeriodCriticalPods", "%v: want at least 0 and at most shutdownGracePeriod, which is %v", c.ShutdownGracePeriodCriticalPods, c.ShutdownGracePeriod)
	}
	if c.StatusUpdates.QPS < 0 {
		wrong("statusUpdates.qps", "%v: want 0, which is no limit, or more", c.StatusUpdates.QPS)
	}
	c.Node.validate(wrong)
	c.Eviction.validate(wrong)
	c.Server.validate(joined || c.Kubeconfig != "", wrong)
	return errors.Join(*problems...)
}

func (n *NodeConfig) validate(wrong func(path, format string, args ...any)) {
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if err := node.CheckLabel(key, n.Labels[key]); err != nil {
			wrong("node.labels["+key+"]", "%v", err)
		}
	}
	for i, text := range n.Taints {
		if err := node.CheckTaint(parseTaint(text)); err != nil {
			wrong(fmt.Sprintf("node.taints[%d]", i), "%v", err)
		}
	}
	for i, address := range n.Addresses {
		if err := node.CheckAddress(address); err != nil {
			wrong(fmt.Sprintf("node.addresses[%d]", i), "%v", err)
		}
	}
	if n.MaxPods < 1 {
		wrong("node.maxPods", "%d: want at least 1", n.MaxPods)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Reserved)) {
		field := "node.reserved[" + name + "]"
		q, err := resource.ParseQuantity(n.Reserved[name])
		if err != nil {
			wrong(field, "%q: want a quantity, such as 500m or 1Gi", n.Reserved[name])
		}
		if err := node.CheckReserved(v1.ResourceName(name), q); err != nil {
			wrong(field, "%v", err)
		}
	}
}

// parseTaint parses KEY[=VALUE]:EFFECT. node.CheckTaint validates the taint.
func parseTaint(text string) v1.Taint {
	left, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(left, "=")
	return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
}

// taints and reserved return the parsed values of a valid config.
func (n *NodeConfig) taints() []v1.Taint {
	var taints []v1.Taint
	for _, text := range n.Taints {
		taints = append(taints, parseTaint(text))
	}
	return taints
}

func (n *NodeConfig) reserved() v1.ResourceList {
	reserved := v1.ResourceList{}
	for name, text := range n.Reserved {
		if q, err := resource.ParseQuantity(text); err == nil {
			reserved[v1.ResourceName(name)] = q
		}
	}
	return reserved
}

// nodeName is the configured name, or the host name.
func (c *Config) nodeName() (string, error) {
	name, err := process.NodeName(c.NodeName)
	if err != nil {
		return "", fmt.Errorf("agent: %w", err)
	}
	return name, nil
}
