package stock

import (
	_ "embed"
	"strconv"
)

//go:embed statusd.yaml
var statusdConfig string

// startStatusd runs statusd as the node's agent, with what the kubelet would have: address, certificate, control group and credentials. Its
// process takes the place of the kubelet's.
func (n *Node) startStatusd(o Options) error {
	k := n.Kubelet
	host, certificate, key := k.host(), `""`, `""`
	if o.Network != nil {
		var err error
		if certificate, key, err = n.servingFiles(o.Network.Address); err != nil {
			return err
		}
	}
	config, err := writeConfig(n.dir, "statusd.yaml", statusdConfig, map[string]string{
		"NODE": n.Name, "KUBECONFIG": k.Kubeconfig, "GROUP": n.Group(), "ADDRESS": host, "PORT": strconv.Itoa(k.Port), "HEALTHZ": strconv.Itoa(k.HealthzPort),
		"AUTHORITY": n.API.Authority(), "CERTIFICATE": certificate, "KEY": key,
	})
	if err != nil {
		return err
	}
	n.statusd = config
	return n.StartStatusd()
}

// StartStatusd runs statusd again after its process has ended, and does not wait for anything.
func (n *Node) StartStatusd() (err error) {
	n.Kubelet.process, err = n.Start("statusd", n.Kubelet.Binary, "run", "--config", n.statusd)
	return err
}
