package scenes

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
)

// Times are how long the longer scenes last: short in tests, longer for the table of docs/evidence/scenes-and-cost.md.
type Times struct {
	// APIDown is how long the API server is down.
	APIDown time.Duration
	// Churn is how long pods come and go.
	Churn time.Duration
	// Pods is how many there are when many are needed.
	Pods int
}

// All are the scenes, for one stage and in this order.
func All(t Times) []Scene {
	return []Scene{
		containerKilled(), kubeletFrozen(), kubeletKilled(), foreignWriter(), runtimeKilled(), serverDown(t.APIDown),
		kubeletCertificate(), ownCertificate(), clockAhead(), kubeletStarts(t.Pods), Churning(t.Churn, t.Pods),
	}
}

// Short are scenes of some seconds each, which show that another version of the kubelet is understood.
func Short() []Scene {
	return []Scene{containerKilled(), kubeletFrozen(), kubeletKilled(), foreignWriter(), runtimeKilled(), kubeletStarts(10)}
}

func pod(name string) string { return metav1.NamespaceDefault + "/" + name }

func withPods(names ...string) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error { return s.Pods(ctx, names...) }
}

// containerKilled: a kubelet that works notices by itself.
func containerKilled() Scene {
	return Scene{
		Name: "container killed behind the kubelet's back", What: "SIGKILL to the processes of a container; the kubelet works",
		Prepare: withPods("killed"),
		Break:   func(ctx context.Context, s *Stage) error { return s.KillContainer(ctx, "killed") },
		Until: func(ctx context.Context, s *Stage) error {
			p, err := s.Pod(ctx, "killed")
			if err == nil && p.Status.ContainerStatuses[0].RestartCount == 0 {
				err = notYet("the API does not have the restart yet")
			}
			return err
		},
		Mend: func(ctx context.Context, s *Stage) error { return s.Delete(ctx, "killed") },
	}
}

func kubeletFrozen() Scene {
	return Scene{
		Name: "kubelet frozen while containers exit", What: "SIGSTOP to the kubelet, then SIGKILL to two containers",
		Expect: []Drift{
			{Kind: audit.KubeletBehindRuntime, Pod: pod("frozen-a"), Container: "main"},
			{Kind: audit.KubeletBehindRuntime, Pod: pod("frozen-b"), Container: "main"},
		},
		Allow:   []audit.Kind{audit.LeaseStale},
		Silent:  audit.SideKubelet,
		Prepare: withPods("frozen-a", "frozen-b", "frozen-c"), // nothing happens to the last
		Break: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Process().Pause(ctx); err != nil {
				return err
			}
			if err := s.KillContainer(ctx, "frozen-a"); err != nil {
				return err
			}
			return s.KillContainer(ctx, "frozen-b")
		},
		Mend: func(ctx context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Resume()
			return s.Delete(ctx, "frozen-a", "frozen-b", "frozen-c")
		},
	}
}

func kubeletKilled() Scene {
	return Scene{
		Name: "kubelet killed and pods deleted by force", What: "SIGKILL to the kubelet, then kubectl delete --force",
		Expect:  []Drift{{Kind: audit.ContainerWithoutPod, Pod: pod("forced"), Container: "main"}},
		Allow:   []audit.Kind{audit.LeaseStale},
		Silent:  audit.SideKubelet,
		Prepare: withPods("forced", "spared"),
		Break: func(ctx context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Kill()
			return s.Delete(ctx, "forced")
		},
		Mend: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Kubelet.Start(); err != nil {
				return err
			}
			return s.Delete(ctx, "spared")
		},
	}
}

// foreignWriter: the kubelet writes its status again within seconds, so the other writer does, too.
func foreignWriter() Scene {
	const lie = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Meddled"}]}}`
	write := func(ctx context.Context, s *Stage) error {
		_, err := s.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, "meddled", types.StrategicMergePatchType, []byte(lie),
			metav1.PatchOptions{FieldManager: "meddler"}, "status")
		return err
	}
	return Scene{
		Name: "status overwritten by another writer", What: "condition Ready of a pod set to False by field manager `meddler`, again and again",
		Expect:  []Drift{{Kind: audit.ForeignWriter, Pod: pod("meddled"), Writer: "meddler"}},
		Prepare: withPods("meddled"),
		Break:   write,
		During:  write,
		Mend:    func(ctx context.Context, s *Stage) error { return s.Delete(ctx, "meddled") },
	}
}

// runtimeKilled: a runtime that does not answer has not lost its containers.
func runtimeKilled() Scene {
	return Scene{
		Name: "containerd killed", What: "SIGKILL to containerd; its containers run on",
		Silent:  audit.SideRuntime,
		Prepare: withPods("runtime-a", "runtime-b"),
		Break: func(_ context.Context, s *Stage) error {
			s.Node.Containerd.Process().Kill()
			return nil
		},
		Mend: func(ctx context.Context, s *Stage) error {
			if err := s.Node.Containerd.Start(ctx); err != nil {
				return err
			}
			return s.Delete(ctx, "runtime-a", "runtime-b")
		},
	}
}

// serverDown: the API's state cannot be read, so no difference may be reported.
func serverDown(lasts time.Duration) Scene {
	var up time.Time
	return Scene{
		Name: "API server down", What: fmt.Sprintf("SIGKILL to the API server, a container killed meanwhile, up again after %v", lasts),
		// A kubelet that takes long to come back has not renewed its lease, and that is true.
		Allow:   []audit.Kind{audit.LeaseStale},
		Silent:  audit.SideAPI,
		Prepare: withPods("server-a", "server-b"),
		Break: func(ctx context.Context, s *Stage) error {
			p, err := s.Pod(ctx, "server-a")
			if err != nil {
				return err
			}
			up = time.Now().Add(lasts)
			if err := s.Node.API.Kill(); err != nil {
				return err
			}
			return s.Node.KillContainer(p.Status.ContainerStatuses[0].ContainerID)
		},
		Until: func(context.Context, *Stage) error {
			if time.Now().Before(up) {
				return notYet("the API server is to be down until %v", up)
			}
			return nil
		},
		Mend: func(ctx context.Context, s *Stage) error {
			if err := s.Node.API.Restart(ctx); err != nil {
				return err
			}
			if _, err := s.Node.AwaitPod(ctx, metav1.NamespaceDefault, "server-a", "restarted", func(p *v1.Pod) bool {
				return p.Status.ContainerStatuses[0].RestartCount > 0
			}); err != nil {
				return err
			}
			return s.Delete(ctx, "server-a", "server-b")
		},
	}
}

// kubeletStarts: much is unknown to a kubelet that has just started.
func kubeletStarts(pods int) Scene {
	var names []string
	for i := range pods {
		names = append(names, fmt.Sprintf("start-%d", i))
	}
	var before int64
	return Scene{
		Name: fmt.Sprintf("kubelet starting with %d pods", pods), What: "SIGKILL to the kubelet, and a new one",
		Prepare: withPods(names...),
		Break: func(_ context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Kill()
			before = time.Now().Unix()
			return s.Node.Kubelet.Start()
		},
		Until: func(ctx context.Context, s *Stage) error {
			// A kubelet whose Node is as the last one left it reports nothing for 5 minutes, but renews the lease at once.
			lease, err := s.Node.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease).Get(ctx, s.Node.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Unix() <= before {
				return notYet("the new kubelet has not renewed its lease yet")
			}
			node, err := s.Node.Admin().CoreV1().Nodes().Get(ctx, s.Node.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range node.Status.Conditions {
				if c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
					return notYet("the node of the new kubelet is not ready yet")
				}
			}
			return s.calmNow(ctx)
		},
		Mend: func(ctx context.Context, s *Stage) error { return s.Delete(ctx, names...) },
	}
}

// calmNow is why the stage's observer is not calm, nil if it is.
func (s *Stage) calmNow(ctx context.Context) error {
	report, err := s.look(ctx, s.Observer)
	if err == nil && (len(report.Differences) > 0 || !report.Sides[audit.SideKubelet].Known()) {
		err = notYet("the sides differ")
	}
	return err
}
