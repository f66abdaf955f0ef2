package scenes

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/observe"
)

// kubeletCertificate: the kubelet's certificate ends while it works. It knows what its containers do and cannot say so.
func kubeletCertificate() Scene {
	const lasts = 10 * time.Second
	var (
		valid   string
		expires time.Time
	)
	return Scene{
		Name: "kubelet's client certificate expired", What: "a kubelet whose certificate ends, then SIGKILL to a container",
		Expect: []Drift{{Kind: observe.UnreportedRestart, Pod: pod("unheard"), Container: "main"}},
		Allow:  []observe.Kind{observe.LeaseStale, observe.APIBehindKubelet},
		Prepare: func(ctx context.Context, s *Stage) error {
			if err := s.Pods(ctx, "unheard"); err != nil {
				return err
			}
			kubelet := s.Node.Kubelet
			valid, expires = kubelet.Kubeconfig, time.Now().Add(lasts)
			var err error
			if kubelet.Kubeconfig, err = s.Node.KubeconfigUntil("short", expires); err != nil {
				return err
			}
			kubelet.Process().Kill()
			return kubelet.Start()
		},
		Break: func(ctx context.Context, s *Stage) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(expires)):
			}
			return s.KillContainer(ctx, "unheard")
		},
		Mend: func(ctx context.Context, s *Stage) error {
			s.Node.Kubelet.Process().Kill()
			s.Node.Kubelet.Kubeconfig = valid
			if err := s.Node.Kubelet.Start(); err != nil {
				return err
			}
			if _, err := s.Node.AwaitPod(ctx, v1.NamespaceDefault, "unheard", "restarted", func(p *v1.Pod) bool {
				return p.Status.ContainerStatuses[0].RestartCount > 0
			}); err != nil {
				return err
			}
			return s.Delete(ctx, "unheard")
		},
	}
}

// ownCertificate: an observer that the API server does not let in knows nothing and says so.
func ownCertificate() Scene {
	var other *Observer
	return Scene{
		Name: "observer's client certificate expired", What: "an observer whose certificate has ended",
		Silent:   observe.SideAPI,
		Prepare:  withPods("unseen"),
		Observer: func(*Stage) *Observer { return other },
		Break: func(ctx context.Context, s *Stage) error {
			kubeconfig, err := s.Node.KubeconfigUntil("expired", time.Now().Add(-time.Hour))
			if err != nil {
				return err
			}
			other, err = s.Another(ctx, "expired", kubeconfig, "")
			return err
		},
		Until: func(ctx context.Context, _ *Stage) error {
			report, err := other.Audit(ctx)
			if err == nil && report.Sides[observe.SideAPI].Err == "" {
				err = notYet("the observer does not say why the API is silent")
			}
			return err
		},
		Mend: func(ctx context.Context, s *Stage) error {
			other.Close()
			return s.Delete(ctx, "unseen")
		},
	}
}
