package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// AdminKubeconfig is the file that lets kubectl in as an administrator.
func (p *Process) AdminKubeconfig() string {
	return filepath.Join(p.options.DataDir, "admin.kubeconfig")
}

// Authority is the file with the certificate of the cluster's authority.
func (p *Process) Authority() string { return filepath.Join(p.options.DataDir, "pki", "ca.crt") }

// AdminConfig is for a client that may do everything. No client-side rate limit is set.
func (p *Process) AdminConfig() *rest.Config { return rest.CopyConfig(p.admin) }

// NodeKubeconfig writes a kubeconfig for the node of that name into the data directory and returns
// its path: user system:node:NAME of group system:nodes. The Node object need not exist.
func (p *Process) NodeKubeconfig(name string) (string, error) {
	if err := p.claim(name); err != nil {
		return "", err
	}
	path := filepath.Join(p.options.DataDir, "node-"+name+".kubeconfig")
	output, err := exec.Command(p.binary, "kubeconfig", "--data-dir", p.options.DataDir, "--node", name, "--out", path).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("control plane: kubeconfig for node %s: %w: %s", name, err, output)
	}
	return path, nil
}

// claim makes a node name of a server that programs share the name of this program, or fails if it is another's: two packages
// of tests with nodes of one name would disturb each other only when they run at the same time.
func (p *Process) claim(name string) error {
	if p.claims == "" {
		return nil
	}
	file, self := filepath.Join(p.claims, name), os.Args[0]
	err := os.Symlink(self, file)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	if owner, err := os.Readlink(file); err != nil || owner != self {
		return fmt.Errorf("control plane: node name %s is in use by %s: choose another, the server is shared (%w)", name, filepath.Base(owner), os.ErrExist)
	}
	return nil
}

// NodeConfig is for a client that may do what a kubelet of the node may do. No client-side rate
// limit is set.
func (p *Process) NodeConfig(name string) (*rest.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if config, ok := p.nodes[name]; ok {
		return rest.CopyConfig(config), nil
	}
	path, err := p.NodeKubeconfig(name)
	if err != nil {
		return nil, err
	}
	config, err := loadConfig(path)
	if err != nil {
		return nil, err
	}
	p.nodes[name] = config
	return rest.CopyConfig(config), nil
}

func loadConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("control plane: kubeconfig %s: %w", path, err)
	}
	config.QPS = -1 // client-go's own limiter would measure itself
	return config, nil
}
