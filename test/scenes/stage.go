package scenes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/checks/deploy"
	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/stock"
)

// StageOptions say where scenes take place.
type StageOptions struct {
	// Program is statusd, an absolute path.
	Program string
	// Kubelet is the kubelet's program; empty: the stage builds one.
	Kubelet string
	// PodsAPI: the kubelet serves its Pods API, and is not asked for /pods.
	PodsAPI bool
	// Settings are more lines of the observer's configuration.
	Settings string
	// Roles are more files of deploy/observe whose rights the observer has.
	Roles []string
	// Log receives what takes minutes; nil: nothing is said.
	Log io.Writer
}

// Stage is a stock node with an observer that has the rights of deploy/observe/rbac.yaml.
type Stage struct {
	Node     *stock.Node
	Observer *Observer

	program, token, kubeconfig, settings string
	// experience is the state directory of an observer that knows the node.
	experience string
	observers  int
	seen       sightings
}

// NewStage starts everything. Close it.
func NewStage(ctx context.Context, o StageOptions) (*Stage, error) {
	options := stock.Options{Log: o.Log, Program: o.Kubelet}
	if o.PodsAPI || o.Kubelet == "" { // an older kubelet does not know the gate
		options.FeatureGates = map[string]bool{"PodsAPI": o.PodsAPI}
	}
	node, err := stock.Run(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &Stage{Node: node, program: o.Program, settings: o.Settings}
	err = s.furnish(ctx, o.Roles)
	if err == nil {
		err = s.learn(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, node.Tail(20))
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stage) furnish(ctx context.Context, roles []string) error {
	server, err := controlplane.Build(ctx, io.Discard)
	if err != nil {
		return err
	}
	objects, err := deploy.Objects(filepath.Dir(filepath.Dir(server)), append([]string{"namespace.yaml", "rbac.yaml"}, roles...)...)
	if err != nil {
		return err
	}
	applier, err := deploy.NewApplier(s.Node.API.AdminConfig())
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := applier.Apply(ctx, object, false); err != nil {
			return err
		}
	}
	day := int64((24 * time.Hour).Seconds())
	request, err := s.Node.Admin().CoreV1().ServiceAccounts("statusd").CreateToken(ctx, "statusd-observe",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.token = filepath.Join(s.Node.Dir(), "token")
	if err := os.WriteFile(s.token, []byte(request.Status.Token), 0o600); err != nil {
		return err
	}
	if s.kubeconfig, err = s.Node.Kubeconfig("observe", s.Node.API.Address(), &clientcmdapi.AuthInfo{TokenFile: s.token}); err != nil {
		return err
	}
	return nil
}

// learn lets an observer see pods start, restart and end, and keeps its measurements. Every scene begins with
// them, so that the fault of one scene does not change the propagation bounds of the next.
func (s *Stage) learn(ctx context.Context) error {
	observer, err := s.Another(ctx, "learn", s.kubeconfig, s.settings)
	if err != nil {
		return err
	}
	s.Observer = observer
	names := []string{"learn-1", "learn-2", "learn-3", "learn-4", "learn-5", "learn-6"}
	if err := s.Pods(ctx, names...); err != nil {
		return err
	}
	for _, name := range names {
		if err := s.KillContainer(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range names {
		if _, err := s.Node.AwaitPod(ctx, metav1.NamespaceDefault, name, "restarted", func(p *v1.Pod) bool {
			return p.Status.ContainerStatuses[0].RestartCount > 0 && stock.Ready(p)
		}); err != nil {
			return err
		}
	}
	if err := s.Calm(ctx); err != nil {
		return err
	}
	if err := s.Delete(ctx, names...); err != nil {
		return err
	}
	if err := s.cleared(ctx); err != nil {
		return err
	}
	s.Observer.Stop()
	s.experience = s.Observer.State
	return s.renew(ctx)
}

// renew starts an observer with the experience in the place of the stage's.
func (s *Stage) renew(ctx context.Context) error {
	s.Observer.Close()
	s.observers++
	name := fmt.Sprintf("observe-%d", s.observers)
	if err := os.CopyFS(filepath.Join(s.Node.Dir(), name), os.DirFS(s.experience)); err != nil {
		return err
	}
	observer, err := s.Another(ctx, name, s.kubeconfig, s.settings)
	if err == nil {
		s.Observer = observer
	}
	return err
}

// Another starts one more observer, with another kubeconfig if it is not empty.
func (s *Stage) Another(ctx context.Context, name, kubeconfig, settings string) (*Observer, error) {
	if kubeconfig == "" {
		kubeconfig = s.kubeconfig
	}
	return StartObserver(ctx, s.Node, ObserverOptions{
		Program: s.program, Name: name, Kubeconfig: kubeconfig, TokenFile: s.token, Settings: settings,
	})
}

// Close ends everything.
func (s *Stage) Close() error {
	if s.Observer != nil {
		s.Observer.Close()
	}
	return s.Node.Close()
}

// Pods creates pods that run until they are killed, and returns when they are ready.
func (s *Stage) Pods(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := s.Node.Create(ctx, s.Node.Pod(name, stock.Forever)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if _, err := s.Node.AwaitPod(ctx, metav1.NamespaceDefault, name, "ready", stock.Ready); err != nil {
			return err
		}
	}
	return nil
}

// Pod is the pod as the API has it.
func (s *Stage) Pod(ctx context.Context, name string) (*v1.Pod, error) {
	return s.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
}

// KillContainer ends the container of a pod behind the kubelet's back.
func (s *Stage) KillContainer(ctx context.Context, pod string) error {
	p, err := s.Pod(ctx, pod)
	if err != nil {
		return err
	}
	return s.Node.KillContainer(p.Status.ContainerStatuses[0].ContainerID)
}

// Delete deletes pods at once, as kubectl delete --force does.
func (s *Stage) Delete(ctx context.Context, names ...string) error {
	grace := int64(0)
	for _, name := range names {
		if err := s.Node.Admin().CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
			return err
		}
	}
	return nil
}

// look asks the observer once, and remembers the drift.
func (s *Stage) look(ctx context.Context, o *Observer) (audit.Report, error) {
	report, err := o.Audit(ctx)
	if err == nil {
		s.seen.add(report, time.Now())
	}
	return report, err
}

// cleared returns when the kubelet has finished with all pods that are not in the API.
func (s *Stage) cleared(ctx context.Context) error {
	return stock.Await(ctx, func() error {
		left, err := s.Node.Pods()
		if err != nil {
			return err
		}
		pods, err := s.Node.Admin().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			delete(left, pods.Items[i].UID)
		}
		if len(left) > 0 {
			return fmt.Errorf("%d pods are left on the node that the API does not have", len(left))
		}
		_, err = s.look(ctx, s.Observer)
		return err
	})
}

// Calm returns when all sides answer and agree.
func (s *Stage) Calm(ctx context.Context) error { return s.calm(ctx, s.Observer) }

// calm returns when all sides of the observer answer and agree.
func (s *Stage) calm(ctx context.Context, o *Observer) error {
	return stock.Await(ctx, func() error {
		report, err := s.look(ctx, o)
		if err != nil {
			return err
		}
		for _, side := range []audit.Side{audit.SideAPI, audit.SideKubelet, audit.SideRuntime, audit.SideMachine} {
			if answer := report.Sides[side]; !answer.Known() {
				return fmt.Errorf("side %s does not answer: %s", side, answer.Err)
			}
		}
		if len(report.Differences) > 0 {
			return fmt.Errorf("the sides differ: %+v", report.Differences)
		}
		return nil
	})
}
