package observer

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/repair"
	"github.com/statusd/statusd/internal/process"
)

// Validate reports all problems of the values, each with the path of its field. Validate reads no file.
func (c *Config) Validate() error {
	c.bracketAddresses()
	wrong, problems := process.Problems()
	if c.NodeName != "" {
		if err := process.CheckNodeName(c.NodeName); err != nil {
			wrong("nodeName", "%v", err)
		}
	}
	if c.StateDir == "" {
		wrong("stateDir", "is empty; name a directory that outlives a restart, such as %s", Default().StateDir)
	}
	if !filepath.IsAbs(c.HostRoot) {
		wrong("hostRoot", "%q: want an absolute path", c.HostRoot)
	}
	if !filepath.IsAbs(c.Manifests) {
		wrong("manifests", "%q: want an absolute path", c.Manifests)
	}
	if !filepath.IsAbs(c.KubeletRoot) {
		wrong("kubeletRoot", "%q: want an absolute path", c.KubeletRoot)
	}
	if c.HealthzBindAddress != "" {
		if err := process.CheckAddress(c.HealthzBindAddress); err != nil {
			wrong("healthzBindAddress", "%v", err)
		}
	}
	if c.MetricsBindAddress != "" {
		if host, _, err := net.SplitHostPort(c.MetricsBindAddress); err != nil || net.ParseIP(host) == nil {
			wrong("metricsBindAddress", "%q: want IP:PORT", c.MetricsBindAddress)
		}
	}
	c.Log.Validate(wrong)
	if endpoint := c.runtimeEndpoint(); endpoint != "" && !strings.HasPrefix(endpoint, "unix://") || c.CRIEndpoint == "" {
		wrong("criEndpoint", "%q: want a Unix socket, such as %s, or none", c.CRIEndpoint, Default().CRIEndpoint)
	}
	c.Kubelet.validate(wrong)
	c.Repair.validate(wrong)
	for _, problem := range c.Guard.Problems() {
		wrong("guard."+problem.Field, "%s", problem.Text)
	}
	c.Machine.Validate(func(field, format string, args ...any) { wrong("machine."+field, format, args...) })
	c.Rules.Validate(wrong)
	c.Outputs.Validate(c.Rules.Enabled(), wrong)
	return errors.Join(*problems...)
}

func (k *KubeletConfig) validate(wrong process.Wrong) {
	if k.URL == "" && (k.PodsSocket == "" || k.PodsSocket == process.NoSocket) {
		wrong("kubelet.url", "is empty, and there is no podsSocket: the kubelet could not be asked")
	}
	if k.URL != "" {
		if u, err := url.Parse(k.URL); err != nil || u.Scheme != "https" || u.Host == "" {
			wrong("kubelet.url", "%q: want https://HOST:PORT", k.URL)
		}
	}
	if (k.CertFile == "") != (k.KeyFile == "") {
		wrong("kubelet.certFile", "and keyFile need each other")
	}
	if k.CertFile != "" && k.TokenFile != "" {
		wrong("kubelet.tokenFile", "is set, and so is certFile; want one")
	}
	if k.Insecure && k.CAFile != "" {
		wrong("kubelet.insecure", "is set, and so is caFile; want one")
	}
}

func (r *RepairConfig) validate(wrong process.Wrong) {
	for i, kind := range r.Kinds {
		if !slices.Contains(repair.Kinds(), audit.Kind(kind)) {
			wrong(fmt.Sprintf("repair.kinds[%d]", i), "%q: want one of %s", kind, join(repair.Kinds()))
		}
	}
}

func join(kinds []audit.Kind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ")
}
