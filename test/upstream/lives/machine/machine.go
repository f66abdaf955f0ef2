package machine

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/controlplane"
)

const (
	// NodeName is the name of the agent's node.
	NodeName    = "local"
	dirVariable = "LIVES_DIR"
	bootIDFile  = "/proc/sys/kernel/random/boot_id"
	// diskSize is small, so that a pod can fill it.
	diskSize = "size=192m,mode=711"
)

// agent is a program that looks after pods.
type agent interface {
	// start begins to run it on a machine that has booted, or on which it was killed.
	start(ctx context.Context, m *Machine) error
	// kill ends it as kill -9 does, and nothing else.
	kill()
	// lost ends what is left of it and of its container runtime after a loss of power, and waits for their ends.
	lost()
}

var agents = map[string]func() agent{
	"kubelet":         func() agent { return &kubelet{} },
	"kubelet-statusd": func() agent { return &kubelet{statusd: true} },
	"doors":           func() agent { return &kubelet{doors: true} },
	"statusd":         func() agent { return &statusd{} },
	"statusd-cri":     func() agent { return &statusd{images: true} },
}

// Machine has one agent, and an API server that only this agent's node uses.
type Machine struct {
	dir        string
	boot       string // a file in the place of the kernel's
	api        *controlplane.Process
	apiProcess []int
	kubeconfig string // of the node
	logind     *logind
	agent      agent
}

// New boots a machine with that agent: "kubelet" or "statusd", "statusd-cri" for statusd on a containerd, "kubelet-statusd" for a kubelet with statusd's manager, or "doors"
// for a kubelet whose API knows clients as it does by default. Call it after Enter.
func New(ctx context.Context, name string) (*Machine, error) {
	newAgent, ok := agents[name]
	if !ok {
		return nil, fmt.Errorf("there is no agent %q", name)
	}
	m := &Machine{dir: os.Getenv(dirVariable), agent: newAgent()}
	m.boot = filepath.Join(m.dir, "boot_id")
	for _, dir := range []string{"disk", "run", "manifests"} {
		if err := os.Mkdir(filepath.Join(m.dir, dir), 0o711); err != nil {
			return nil, err
		}
	}
	if err := unix.Mount("tmpfs", filepath.Join(m.dir, "disk"), "tmpfs", 0, diskSize); err != nil {
		return nil, fmt.Errorf("mount a small disk: %w", err)
	}
	if err := m.newBoot(); err != nil {
		return nil, err
	}
	if err := unix.Mount(m.boot, bootIDFile, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("put a boot ID in the place of the kernel's: %w", err)
	}
	var err error
	if m.logind, err = startLogind(); err != nil {
		return nil, err
	}
	if err := m.startAPI(ctx); err != nil {
		return nil, err
	}
	return m, m.agent.start(ctx, m)
}

func (m *Machine) startAPI(ctx context.Context) error {
	before, err := processes()
	if err != nil {
		return err
	}
	if m.api, err = controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(m.dir, "api"), Log: os.Stderr}); err != nil {
		return err
	}
	after, err := processes()
	if err != nil {
		return err
	}
	for pid := range after {
		if _, old := before[pid]; !old {
			m.apiProcess = append(m.apiProcess, pid)
		}
	}
	m.kubeconfig, err = m.api.NodeKubeconfig(NodeName)
	return err
}

func (m *Machine) newBoot() error {
	var b [16]byte
	_, _ = rand.Read(b[:])
	id := fmt.Sprintf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return os.WriteFile(m.boot, []byte(id), 0o444) // in place: the mount is of this very file
}

// Admin is for a client that may do everything.
func (m *Machine) Admin() *rest.Config { return m.api.AdminConfig() }

// PKI is the directory of the authority of the cluster.
func (m *Machine) PKI() string { return filepath.Join(m.dir, "api", "pki") }

// KubeletAddress is where the kubelet serves its API, empty if the agent is another one.
func (m *Machine) KubeletAddress() string {
	k, ok := m.agent.(*kubelet)
	if !ok {
		return ""
	}
	return k.Address()
}

// Manifests is the directory of static pods.
func (m *Machine) Manifests() string { return filepath.Join(m.dir, "manifests") }

// Logs is the directory of what the programs said.
func (m *Machine) Logs() string { return m.dir }

// Reboot is a loss of power, and the next boot.
func (m *Machine) Reboot(ctx context.Context) error {
	if err := killAll(append(m.apiProcess, m.logind.daemon.Process.Pid)...); err != nil {
		return err
	}
	m.agent.lost()
	if err := m.newBoot(); err != nil {
		return err
	}
	run := filepath.Join(m.dir, "run")
	if err := unmountBelow(run); err != nil {
		return err
	}
	if err := os.RemoveAll(run); err != nil {
		return err
	}
	if err := os.Mkdir(run, 0o711); err != nil {
		return err
	}
	return m.agent.start(ctx, m)
}

// Restart kills the agent and starts it again. Its pods run on.
func (m *Machine) Restart(ctx context.Context) error {
	m.agent.kill()
	return m.agent.start(ctx, m)
}

// Announce announces that the machine begins to shut down, or that the shutdown is canceled.
func (m *Machine) Announce(shutdown bool) error { return m.logind.announce(shutdown) }
