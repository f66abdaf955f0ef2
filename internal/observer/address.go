package observer

import (
	"net"
	"strings"
)

// bracketed adds brackets to an IPv6 address with a port, as URLs and listeners require. A manifest can only join address and port by a colon:
// the downward API returns the address of a node without brackets.
func bracketed(address string) string {
	at := strings.LastIndexByte(address, ':')
	if at < 0 || strings.Count(address, ":") < 2 || strings.HasPrefix(address, "[") {
		return address
	}
	if host := address[:at]; net.ParseIP(host) != nil {
		return net.JoinHostPort(host, address[at+1:])
	}
	return address
}

// bracketAddresses brackets the addresses of the config.
func (c *Config) bracketAddresses() {
	const scheme = "https://"
	if address, ok := strings.CutPrefix(c.Kubelet.URL, scheme); ok {
		c.Kubelet.URL = scheme + bracketed(address)
	}
	c.HealthzBindAddress, c.MetricsBindAddress = bracketed(c.HealthzBindAddress), bracketed(c.MetricsBindAddress)
}
