package process

import (
	"fmt"
	"net"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// CheckAddress returns an error unless an address is one of this machine alone.
func CheckAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q: want IP:PORT", address)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q: want a loopback address such as 127.0.0.1, because everyone who can reach it can read it", address)
	}
	return nil
}

// CheckNodeName returns an error unless a node can have the name.
func CheckNodeName(name string) error {
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		return fmt.Errorf("%q: %s", name, strings.Join(reasons, "; "))
	}
	return nil
}

// HostName is the name of this machine, made the name of a node.
func HostName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find out the host name; set nodeName: %w", err)
	}
	name = strings.ToLower(name)
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		return "", fmt.Errorf("host name %q cannot be the name of a node; set nodeName: %s", name, strings.Join(reasons, "; "))
	}
	return name, nil
}

// NodeName is the configured name of a node, or else the machine's.
func NodeName(configured string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	return HostName()
}
