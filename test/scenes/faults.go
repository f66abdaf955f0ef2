package scenes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/test/stock"
)

// renewedLongAgo has tools that go by the lease believe that a kubelet which works is dead.
func renewedLongAgo() Lie {
	past := func(ctx context.Context, s *Stage) error {
		return lease(ctx, s, `{"spec":{"renewTime":"2020-01-01T00:00:00.000000Z"}}`)
	}
	return Lie{Name: "lease renewed in 2020", What: "`renewTime` patched twice a second; the kubelet works", Lasts: 2 * time.Minute, Expect: audit.ForeignWriter, Break: past, Again: past, Spared: true}
}

func leaseOfASecond() Lie {
	short := func(ctx context.Context, s *Stage) error { return lease(ctx, s, `{"spec":{"leaseDurationSeconds":1}}`) }
	return Lie{Name: "lease of one second", What: "`leaseDurationSeconds` 1, patched twice a second; the kubelet works", Lasts: time.Minute, Expect: audit.ForeignWriter, Break: short, Again: short, Spared: true}
}

func leaseDeletedAgain() Lie {
	again := func(ctx context.Context, s *Stage) error { return ignoreNotFound(deleteLease(ctx, s)) }
	return Lie{Name: "lease deleted again and again", What: "deleted twice a second; the kubelet works", Lasts: 90 * time.Second, Expect: audit.LeaseStale, Break: again, Again: again}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// flapping makes a pod not ready every now and then; the kubelet makes it ready again.
func flapping() Lie {
	lie := written("readiness that flaps", "Ready False, patched every 7 s", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, audit.ForeignWriter, "")
	var last time.Time
	patch := lie.Break
	lie.Break = func(ctx context.Context, s *Stage) error {
		if time.Since(last) < 7*time.Second {
			return nil
		}
		last = time.Now()
		return patch(ctx, s)
	}
	lie.Again = lie.Break
	return lie
}

// nodeDeleted deletes the Node of a kubelet that works. The kubelet does not register it again before its next start.
func nodeDeleted() Lie {
	return Lie{Name: "Node deleted", What: "`kubectl delete node` while the kubelet works", Lasts: 2 * time.Minute, Expect: audit.ReadyOnDeadNode, Prepare: withPods("stranded"),
		Break: func(ctx context.Context, s *Stage) error {
			return s.Node.Admin().CoreV1().Nodes().Delete(ctx, s.Node.Name, metav1.DeleteOptions{})
		},
		Mend: func(ctx context.Context, s *Stage) error {
			if err := s.restartKubelet(ctx); err != nil {
				return err
			}
			return ignoreNotFound(s.Delete(ctx, "stranded"))
		}}
}

// restartKubelet ends the kubelet and starts another one, as an upgrade does.
func (s *Stage) restartKubelet(ctx context.Context) error {
	s.Node.Kubelet.Process().Kill()
	if err := s.Node.Kubelet.Start(); err != nil {
		return err
	}
	return s.Node.Ready(ctx)
}

// cloned starts another containerd and kubelet with the name and the credentials of the node, as a clone of the machine does.
func cloned() Lie {
	var clone *stock.Node
	return Lie{Name: "a clone of the node", What: "a second containerd and kubelet of the same name and machine ID; each pod runs twice", Lasts: 3 * time.Minute, Expect: audit.TwoKubelets, Prepare: withPods("twice-1", "twice-2", "twice-3"),
		Break: func(ctx context.Context, s *Stage) (err error) {
			clone, err = stock.Run(ctx, stock.Options{Name: s.Node.Name, API: s.Node.API})
			return err
		},
		Mend: func(ctx context.Context, s *Stage) error {
			return errors.Join(clone.Close(), s.Delete(ctx, "twice-1", "twice-2", "twice-3"))
		}}
}

func kubeletReplaced() Lie {
	return Lie{Name: "kubelet restarted three times", What: "SIGKILL to a container and the kubelet, and a start, as an upgrade that is tried again", Lasts: 40 * time.Second, Why: "the kubelet finds what has happened within seconds", Prepare: withPods("kept"),
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.KillContainer(ctx, "kept"); err != nil {
				return err
			}
			for range 3 {
				if err := s.restartKubelet(ctx); err != nil {
					return err
				}
			}
			return nil
		},
		Mend: deleting("kept")}
}

// runtimeSlow stops containerd for most of the time, so that each request takes seconds and none fails.
func runtimeSlow() Lie {
	slow := func(ctx context.Context, s *Stage) error {
		if err := s.Node.Containerd.Process().Pause(ctx); err != nil {
			return err
		}
		defer s.Node.Containerd.Process().Signal(syscall.SIGCONT)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
			return nil
		}
	}
	return Lie{Name: "containerd slow", What: "stopped by SIGSTOP for 2 s of each 2.5 s", Lasts: 90 * time.Second, Why: "it answers, late; nothing is untrue", Prepare: withPods("slow"), Break: slow, Again: slow, Mend: deleting("slow")}
}

// runtimeLost starts containerd without its stored state. The shims and the processes of its containers keep
// running.
func runtimeLost() Lie {
	return Lie{Name: "containerd restarted with lost state", What: "SIGSTOP to the kubelet, SIGKILL to containerd, which starts without its state; processes run on", Halts: true, Lasts: 90 * time.Second, Expect: audit.RunningWithoutContainer, Prepare: withPods("lost"),
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			s.Node.Containerd.Process().Kill()
			dir := s.Node.Containerd.Dir
			archives, err := filepath.Glob(filepath.Join(dir, "*.tar")) // without them the images are made again
			if err != nil {
				return err
			}
			for _, path := range append(archives, filepath.Join(dir, "containerd", "io.containerd.metadata.v1.bolt"), filepath.Join(dir, "run", "containerd", "io.containerd.grpc.v1.cri")) {
				if err := os.RemoveAll(path); err != nil {
					return err
				}
			}
			return s.Node.Containerd.Start(ctx)
		},
		Mend: func(ctx context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Resume()
			return s.Delete(ctx, "lost")
		}}
}

func writesRefused() Lie {
	return Lie{Name: "webhook refuses all writes", What: "a webhook on `*/*` that is down", Lasts: 2 * time.Minute, Expect: audit.LeaseStale, Spared: true, Break: refuse("*", "*/*"), Mend: accept}
}

// maintained cordons the Node and asks for maintenance by annotation, then ends the kubelet.
func maintained() Lie {
	annotate := func(ctx context.Context, s *Stage, patch string) error {
		_, err := s.Node.Admin().CoreV1().Nodes().Patch(ctx, s.Node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	return Lie{Name: "maintenance by annotation", What: "cordon and annotation `" + guard.MaintenanceAnnotation + "`, then SIGSTOP to the kubelet", Halts: true, Lasts: 90 * time.Second, Expect: audit.LeaseStale, Spared: true,
		Prepare: func(ctx context.Context, s *Stage) error {
			return annotate(ctx, s, `{"metadata":{"annotations":{"`+guard.MaintenanceAnnotation+`":"true"}},"spec":{"unschedulable":true}}`)
		},
		Break: func(ctx context.Context, s *Stage) error { return s.Node.Kubelet.Process().Pause(ctx) },
		Mend: func(ctx context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Resume()
			return annotate(ctx, s, `{"metadata":{"annotations":{"`+guard.MaintenanceAnnotation+`":null}},"spec":{"unschedulable":null}}`)
		}}
}
