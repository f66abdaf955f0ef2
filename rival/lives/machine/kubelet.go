package machine

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// networkConfig is a network without plugins: a node without one is not ready, and pods use that of the host.
const networkConfig = `{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}`

// kubelet is the stock kubelet with containerd.
type kubelet struct {
	containerd, process *process
	port                int
	doors               bool // asks who clients are and what they may do, as it does by default
}

// access is how its API knows clients.
func (k *kubelet) access(m *Machine) (authentication, authorization string) {
	if k.doors {
		return "{anonymous: {enabled: false}, x509: {clientCAFile: " + filepath.Join(m.PKI(), "ca.crt") + "}}", "{mode: Webhook}"
	}
	return "{anonymous: {enabled: false}, webhook: {enabled: false}}", "{mode: AlwaysAllow}"
}

func (k *kubelet) start(ctx context.Context, m *Machine) error {
	if k.containerd == nil || k.containerd.over() {
		if err := k.startContainerd(ctx, m); err != nil {
			return err
		}
	}
	if k.port == 0 {
		var err error
		if k.port, err = freePort(); err != nil {
			return err
		}
	}
	authentication, authorization := k.access(m)
	config, err := m.write("kubelet.yaml", kubeletConfig, map[string]string{
		"PORT": strconv.Itoa(k.port), "AUTHENTICATION": authentication, "AUTHORIZATION": authorization,
	})
	if err != nil {
		return err
	}
	root := filepath.Join(m.dir, "disk", "kubelet")
	k.process, err = m.start("kubelet", kubeletBinary(), "--config", config, "--kubeconfig", m.kubeconfig,
		"--hostname-override", NodeName, "--root-dir", root, "--cert-dir", filepath.Join(root, "pki"))
	return err
}

func (k *kubelet) kill() { k.process.kill() }

func (p *process) over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// startContainerd waits until it answers. The images are made once.
func (k *kubelet) startContainerd(ctx context.Context, m *Machine) error {
	config, err := m.write("containerd.toml", containerdConfig, nil)
	if err != nil {
		return err
	}
	if _, err := m.write("cni.conflist", networkConfig, nil); err != nil {
		return err
	}
	if k.containerd, err = m.start("containerd", "containerd", "--config", config); err != nil {
		return err
	}
	socket := filepath.Join(m.dir, "run", "containerd.sock")
	ctr := func(args ...string) error {
		output, err := exec.CommandContext(ctx, "ctr", append([]string{"-a", socket, "-n", "k8s.io"}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, output)
		}
		return nil
	}
	if err := await(ctx, func() error { return ctr("version") }); err != nil {
		return err
	}
	for _, image := range [][]string{
		{"docker.io/library/host:latest", filepath.Join(m.dir, "host.tar"), "/bin/sh"},
		{"docker.io/library/pause:hand", filepath.Join(m.dir, "pause.tar"), "/bin/sh", "-c", "while :; do sleep 1000; done"},
	} {
		if _, err := os.Stat(image[1]); err == nil {
			continue
		}
		script := exec.CommandContext(ctx, "sh", append([]string{"-s", "--"}, image...)...)
		script.Stdin = strings.NewReader(imageScript)
		if output, err := script.CombinedOutput(); err != nil {
			return fmt.Errorf("make image %s: %w: %s", image[0], err, output)
		}
		if err := ctr("image", "import", image[1]); err != nil {
			return err
		}
	}
	return nil
}

// freePort is one of the loopback interface that was free just now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
