package scenes

import (
	"context"
	"fmt"
	"strings"
)

// Guard ends the kubelet and starts an observer whose guard runs it from then on, restarts it, and writes condition and
// Events. Policy are more lines of the section guard; without any, the bounds of restarts are the standard ones. The
// stage needs the rights of guard.yaml.
func (s *Stage) Guard(ctx context.Context, policy string) (*Observer, error) {
	var command strings.Builder
	for _, word := range s.Node.Kubelet.Command() {
		fmt.Fprintf(&command, "\n    - %q", word)
	}
	s.Node.Kubelet.Process().Kill()
	return s.Another(ctx, "guard", "", fmt.Sprintf(`%sguard:
  enabled: true
  unit: ""
  runtimeUnit: ""
  command:%s
  healthzURL: http://127.0.0.1:%d/healthz
  restart: true
  nodeCondition: true
  events: true
%s`, s.settings, command.String(), s.Node.Kubelet.HealthzPort, policy))
}
