package machine

import (
	"context"

	"github.com/statusd/statusd/test/stock"
)

// statusd is statusd with its process runtime.
type statusd struct{ process *stock.Process }

func (s *statusd) start(_ context.Context, m *Machine) error {
	config, err := m.write("statusd.yaml", statusdConfig, map[string]string{"KUBECONFIG": m.kubeconfig, "CGROUP": "/" + groupNames["statusd"]})
	if err != nil {
		return err
	}
	s.process, err = m.start("statusd", statusdBinary(), "run", "--config", config)
	return err
}

func (s *statusd) kill() { s.process.Kill() }
