package machine

import (
	"context"

	"github.com/statusd/statusd/test/stock"
)

// statusd is statusd with its process runtime, or on a containerd.
type statusd struct {
	process    *stock.Process
	images     bool // its containers are of images
	containerd *stock.Containerd
}

// onContainerd are the lines of its configuration for a containerd.
const onContainerd = "runtime: cri\ncontainerRuntimeEndpoint: unix://$DIR/run/containerd.sock\n"

func (s *statusd) start(ctx context.Context, m *Machine) error {
	text, group := statusdConfig, groupNames["statusd"]
	if s.images {
		text, group = statusdConfig+onContainerd, groupNames["statusd-cri"]
		if s.containerd == nil {
			s.containerd = &stock.Containerd{Dir: m.dir, Launch: m.start}
		}
		if err := s.containerd.Start(ctx); err != nil {
			return err
		}
	}
	config, err := m.write("statusd.yaml", text, map[string]string{"KUBECONFIG": m.kubeconfig, "CGROUP": "/" + group})
	if err != nil {
		return err
	}
	s.process, err = m.start("statusd", statusdBinary(), "run", "--config", config)
	return err
}

func (s *statusd) kill() { s.process.Kill() }

func (s *statusd) lost() {
	s.kill()
	if s.containerd != nil {
		s.containerd.Process().Kill()
	}
}
