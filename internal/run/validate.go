package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/statusd/statusd/agent"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/runtime"
)

// Validate reports all problems of the values, each with the path of its field. Validate reads no file:
// see [CheckConfig] for files.
func (c *Config) Validate() error {
	return errors.Join(c.Config.Validate(), c.validateDaemon())
}

// validateDaemon is about what only the daemon has.
func (c *Config) validateDaemon() error {
	wrong, problems := process.Problems()
	if c.CgroupParent != "" && (!strings.HasPrefix(c.CgroupParent, "/") || path.Clean(c.CgroupParent) != c.CgroupParent || c.CgroupParent == "/") {
		wrong("cgroupParent", "%q: want a path below the root of the control groups, such as %s", c.CgroupParent, Default().CgroupParent)
	}
	if c.Runtime != RuntimeProcess && c.Runtime != RuntimeCRI {
		wrong("runtime", "%q: want %s or %s", c.Runtime, RuntimeProcess, RuntimeCRI)
	}
	if c.ContainerRuntimeEndpoint != "" && !strings.HasPrefix(c.ContainerRuntimeEndpoint, "unix://") {
		wrong("containerRuntimeEndpoint", "%q: want a socket, as in unix:///run/containerd/containerd.sock", c.ContainerRuntimeEndpoint)
	}
	for i, address := range c.ClusterDNS {
		if net.ParseIP(address) == nil {
			wrong(fmt.Sprintf("clusterDNS[%d]", i), "%q: want an IP address", address)
		}
	}
	c.Log.Validate(wrong)
	if c.ContainerLogs.MaxBytes < 1024 {
		wrong("containerLogs.maxBytes", "%d: want at least 1024", c.ContainerLogs.MaxBytes)
	}
	c.Rules.Validate(wrong)
	c.Outputs.Validate(c.Rules.Enabled(), wrong)
	host := c.Machine.host()
	host.Validate(func(field, format string, args ...any) { wrong("machine."+field, format, args...) })
	return errors.Join(*problems...)
}

// CheckConfig returns all reasons for which [New] would refuse the config: wrong values, and files
// that cannot be used. CheckConfig sends no request.
func CheckConfig(config Config) error {
	if err := config.validateDaemon(); err != nil {
		return errors.Join(agent.CheckConfig(config.Config), err)
	}
	return errors.Join(agent.CheckConfig(config.Config), config.Rules.Check(&config.Outputs))
}

// Check is [CheckConfig] and, if the config is good, [agent.CheckManifests].
func Check(ctx context.Context, config Config, rt runtime.Runtime) (pods int, problems []error) {
	if err := CheckConfig(config); err != nil {
		return 0, []error{err}
	}
	return agent.CheckManifests(ctx, config.Config, rt)
}
