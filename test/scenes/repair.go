package scenes

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/stock"
)

// repairSettings allow all repairs.
const repairSettings = `repair: {kinds: [KubeletBehindRuntime, UnreportedRestart, RunningWithoutContainer, ContainerWithoutPod]}
`

// Repaired is how long after the end of the kubelet a repair was seen.
type Repaired struct {
	Kind  audit.Kind
	What  string
	After time.Duration
}

// Repair kills the kubelet, makes the API untrue, and returns when an observer that may has repaired it. The observer waits until the kubelet has
// been dead for some minutes. Then the kubelet is started, and all must be calm. The stage needs the rights of deploy/repair.
func (s *Stage) Repair(ctx context.Context) (done []Repaired, err error) {
	if err := s.Pods(ctx, "ended", "forced-away", "untouched"); err != nil {
		return nil, err
	}
	forced, err := s.Pod(ctx, "forced-away")
	if err != nil {
		return nil, err
	}
	container := forced.Status.ContainerStatuses[0].ContainerID
	observer, err := s.Another(ctx, "repair", "", s.settings+repairSettings)
	if err != nil {
		return nil, err
	}
	defer observer.Close()
	if err := s.calm(ctx, observer); err != nil {
		return nil, err
	}
	s.Node.Kubelet.Process().Kill()
	begin := time.Now()
	if err := s.KillContainer(ctx, "ended"); err != nil {
		return nil, err
	}
	if err := s.Delete(ctx, "forced-away"); err != nil {
		return nil, err
	}
	if _, err := s.Node.AwaitPod(ctx, v1.NamespaceDefault, "ended", "repaired: its container has not ended in the API", func(p *v1.Pod) bool {
		return p.Status.ContainerStatuses[0].State.Running == nil
	}); err != nil {
		return nil, err
	}
	done = append(done, Repaired{audit.KubeletBehindRuntime, "the API has the end of the container", time.Since(begin)})
	err = stock.Await(ctx, func() error {
		if pids, err := s.Node.PIDs(container); err == nil && len(pids) > 0 {
			return fmt.Errorf("container %s of a pod that was deleted by force still has %d processes", container, len(pids))
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	done = append(done, Repaired{audit.ContainerWithoutPod, "the container is gone from the runtime", time.Since(begin)})
	untouched, err := s.Pod(ctx, "untouched")
	if err != nil {
		return done, err
	}
	if status := untouched.Status.ContainerStatuses[0]; status.State.Running == nil || status.RestartCount != 0 {
		return done, fmt.Errorf("a pod that was true was changed: %+v", status)
	}
	if err := s.Node.Kubelet.Start(); err != nil {
		return done, err
	}
	if _, err := s.Node.AwaitPod(ctx, v1.NamespaceDefault, "ended", "restarted", func(p *v1.Pod) bool {
		return p.Status.ContainerStatuses[0].RestartCount > 0 && stock.Ready(p)
	}); err != nil {
		return done, err
	}
	if err := s.calm(ctx, observer); err != nil {
		return done, err
	}
	return done, s.Delete(ctx, "ended", "untouched")
}
