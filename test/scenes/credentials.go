package scenes

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/stock"
)

// kubeletCertificate: the kubelet's certificate ends while it works. It knows what its containers do and cannot say so.
func kubeletCertificate() Scene {
	var (
		valid     string
		expires   time.Time
		witnesses []string
	)
	return Scene{
		Name: "kubelet's client certificate expired", What: "a kubelet whose certificate ends, then SIGKILL to a container",
		Expect: []Drift{{Kind: audit.UnreportedRestart, Pod: pod("unheard"), Container: "main"}},
		Allow:  []audit.Kind{audit.LeaseStale, audit.APIBehindKubelet},
		Prepare: func(ctx context.Context, s *Stage) error {
			if err := s.Pods(ctx, "unheard"); err != nil {
				return err
			}
			valid = s.Node.Kubelet.Kubeconfig
			// Before the end of its certificate a kubelet must have listed its pods, and have authenticated the observer
			// at the API server. Agreement of all sides about another pod shows both; a slow machine gets more time for
			// it.
			for lasts := 10 * time.Second; ; lasts *= 2 {
				expires = time.Now().Add(lasts)
				if err := s.restartUntil(expires); err != nil {
					return err
				}
				witness := fmt.Sprintf("witness-%d", len(witnesses))
				if _, err := s.Node.Create(ctx, s.Node.Pod(witness, stock.Forever)); err != nil {
					return err
				}
				witnesses = append(witnesses, witness)
				limited, cancel := context.WithDeadline(ctx, expires)
				_, err := s.Node.AwaitPod(limited, v1.NamespaceDefault, witness, "ready", stock.Ready)
				if err == nil {
					err = s.calm(limited, s.Observer)
				}
				cancel()
				if err == nil || ctx.Err() != nil {
					return err
				}
			}
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
			return s.Delete(ctx, append(witnesses, "unheard")...)
		},
	}
}

// restartUntil restarts the kubelet with a certificate that ends at a time.
func (s *Stage) restartUntil(end time.Time) (err error) {
	kubelet := s.Node.Kubelet
	if kubelet.Kubeconfig, err = s.Node.KubeconfigUntil("short", end); err != nil {
		return err
	}
	kubelet.Process().Kill()
	return kubelet.Start()
}

// ownCertificate: an observer that the API server does not let in knows nothing and says so.
func ownCertificate() Scene {
	var other *Observer
	return Scene{
		Name: "observer's client certificate expired", What: "an observer whose certificate has ended",
		Silent:   audit.SideAPI,
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
			if err == nil && report.Sides[audit.SideAPI].Err == "" {
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
