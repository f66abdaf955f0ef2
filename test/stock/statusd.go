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
	if err := n.ConfigureStatusd(o.Network); err != nil {
		return err
	}
	return n.StartStatusd()
}

// StatusdConfig is the file that ConfigureStatusd has written.
func (n *Node) StatusdConfig() string { return n.statusd }

// ConfigureStatusd writes the configuration of a statusd that takes the place of the node's kubelet.
func (n *Node) ConfigureStatusd(network *Network) error {
	k := n.Kubelet
	host, certificate, key := k.host(), `""`, `""`
	if network != nil {
		var err error
		if certificate, key, err = n.servingFiles(network.Address); err != nil {
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
	return nil
}

// StartStatusd runs statusd again after its process has ended, and does not wait for anything.
func (n *Node) StartStatusd() (err error) {
	n.Kubelet.process, err = n.Start("statusd", n.Kubelet.Binary, "run", "--config", n.statusd)
	return err
}
