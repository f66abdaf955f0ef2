package pki

import (
	"encoding/base64"
	"fmt"
	"regexp"
)

// MastersGroup is the group that may do everything.
const MastersGroup = "system:masters"

// nodesGroup is the group that the Node authorizer and NodeRestriction check.
const nodesGroup = "system:nodes"

// nodeName is what Kubernetes accepts as the name of a Node object.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// AdminKubeconfig lets its bearer do everything at the server.
func (a *Authority) AdminKubeconfig(server string) ([]byte, error) {
	return a.kubeconfig(server, "admin", MastersGroup)
}

// NodeKubeconfig lets its bearer do what a kubelet of the node may do.
func (a *Authority) NodeKubeconfig(server, node string) ([]byte, error) {
	if len(node) > 253 || !nodeName.MatchString(node) {
		return nil, fmt.Errorf("node name %q: want lower-case letters, digits, '-' and '.', starting and ending with a letter or digit", node)
	}
	return a.kubeconfig(server, "system:node:"+node, nodesGroup)
}

// ComponentKubeconfig lets its bearer do what the roles that Kubernetes binds to this user allow, such as
// system:kube-scheduler.
func (a *Authority) ComponentKubeconfig(server, user string) ([]byte, error) {
	return a.kubeconfig(server, user)
}

// kubeconfig holds all it needs inside, so that the file can be moved anywhere.
func (a *Authority) kubeconfig(server, user string, groups ...string) ([]byte, error) {
	pair, err := a.IssueClient(user, groups...)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: controlplane
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %[3]q
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
contexts:
- name: controlplane
  context:
    cluster: controlplane
    user: %[3]q
current-context: controlplane
`, server, text(a.Certificate()), user, text(pair.Certificate), text(pair.Key)), nil
}

func text(content []byte) string { return base64.StdEncoding.EncodeToString(content) }
