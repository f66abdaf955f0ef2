package scenes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// restartScript ends the kubelet of the pid file and starts another one, as an init system without systemd does. The first
// process of the node collects the orphans.
const restartScript = `#!/bin/sh
pid=$(cat %[1]s 2>/dev/null)
while [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; do sleep 0.1; done
%[2]s </dev/null >>%[3]s 2>&1 &
echo $! >%[1]s
`

// Guard starts an observer whose guard restarts the kubelet and writes condition and Events, and replaces the kubelet by one that the
// guard's command starts. policy has more lines for the section guard; without them, the bounds of restarts are the standard ones.
// The stage needs the rights of deploy/guard.
func (s *Stage) Guard(ctx context.Context, policy string) (*Observer, error) {
	var words []string
	for _, word := range s.Node.Kubelet.Command() {
		words = append(words, "'"+word+"'")
	}
	pidFile, script := filepath.Join(s.Node.Dir(), "kubelet.pid"), filepath.Join(s.Node.Dir(), "restart-kubelet")
	text := fmt.Sprintf(restartScript, pidFile, strings.Join(words, " "), filepath.Join(s.Node.Dir(), "guarded-kubelet.log"))
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		return nil, err
	}
	s.Node.Kubelet.Process().Kill()
	first, err := s.Node.Start("restart-kubelet", script)
	if err != nil {
		return nil, err
	}
	select {
	case <-first.Exited():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	settings := fmt.Sprintf(`%sguard:
  enabled: true
  unit: ""
  runtimeUnit: ""
  restartCommand: [%s]
  healthzURL: http://127.0.0.1:%d/healthz
  restart: true
%soutputs: {conditions: true, events: true}
`, s.settings, script, s.Node.Kubelet.HealthzPort, policy)
	return StartObserver(ctx, s.Node, ObserverOptions{
		Program: s.program, Name: "guard", Kubeconfig: s.kubeconfig, TokenFile: s.token, PIDFile: pidFile, Settings: settings,
	})
}
