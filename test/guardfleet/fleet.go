package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/guard/guardsetup"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/controlplane"
)

// fleet is some nodes with a guard each and an API server.
type fleet struct {
	server   *controlplane.Process
	admin    kubernetes.Interface
	kubelets []*kubelet
	guards   []*guardsetup.Guard

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// semaphore is the namespace of the slots.
const semaphore = "statusd"

// newFleet starts everything. Close it.
func newFleet(ctx context.Context, dir string, nodes int, bounded bool) (*fleet, error) {
	server, err := controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(dir, "server"), Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(ctx)
	f := &fleet{server: server, cancel: cancel}
	if f.admin, err = client(server); err == nil {
		err = f.start(own, dir, nodes, bounded)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// client has a connection of its own, as each node has.
func client(server *controlplane.Process) (kubernetes.Interface, error) {
	config := server.AdminConfig()
	config.QPS = -1
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return kubernetes.NewForConfig(rest.CopyConfig(config))
}

func (f *fleet) start(ctx context.Context, dir string, nodes int, bounded bool) error {
	if _, err := f.admin.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: semaphore}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := campaign.Await(ctx, time.Second, func() error {
		_, err := f.admin.CoreV1().Namespaces().Get(ctx, v1.NamespaceNodeLease, metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	for i := range nodes {
		if err := f.addNode(ctx, fmt.Sprintf("node-%02d", i), dir, bounded); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) addNode(ctx context.Context, name, dir string, bounded bool) error {
	own, err := client(f.server)
	if err != nil {
		return err
	}
	if _, err := own.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	k := &kubelet{node: name, client: own, pid: 1, started: time.Now()}
	if k.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	health := &http.Server{Handler: k, ReadHeaderTimeout: time.Minute}
	f.running.Go(func() { _ = health.Serve(k.listener) })
	f.running.Go(func() {
		<-ctx.Done()
		_ = health.Close()
	})
	config := guardsetup.Default()
	config.Enabled, config.Restart, config.Unit, config.RuntimeUnit, config.RestartCommand = true, true, "", "", []string{"restart"}
	config.HealthzURL = fmt.Sprintf("http://%s/healthz", k.listener.Addr())
	if config.Semaphore = ""; bounded {
		config.Semaphore = semaphore
	}
	guardClient, err := client(f.server)
	if err != nil {
		return err
	}
	state := filepath.Join(dir, name)
	if err := os.Mkdir(state, 0o700); err != nil {
		return err
	}
	g, err := guardsetup.New(config, guardsetup.Options{Node: name, StateDir: state, Kubelet: k, Client: guardClient})
	if err != nil {
		return err
	}
	f.kubelets, f.guards = append(f.kubelets, k), append(f.guards, g)
	f.running.Go(func() { k.run(ctx) })
	f.running.Go(func() { _ = g.Run(ctx) })
	return nil
}

func (f *fleet) close() error {
	f.server.Thaw()
	f.cancel()
	f.running.Wait()
	return f.server.Kill()
}

// healthy returns when every guard has found its kubelet healthy.
func (f *fleet) healthy(ctx context.Context) error {
	return campaign.Await(ctx, time.Second, func() error {
		for i, g := range f.guards {
			if r := g.Report(); r.Health != guard.Healthy {
				return fmt.Errorf("%s is %s: %s", f.kubelets[i].node, r.Health, codes(r.Verdict))
			}
		}
		return nil
	})
}

// codes are the reasons of a verdict.
func codes(v guard.Verdict) string {
	var all []string
	for _, reason := range v.Reasons {
		all = append(all, reason.Code)
	}
	return strings.Join(all, ", ")
}

// verdicts counts the nodes by their guards' verdicts, and returns the most frequent verdict that is not healthy.
func (f *fleet) verdicts() (counts map[guard.Health]int, words string) {
	counts = map[guard.Health]int{}
	said := map[string]int{}
	for _, g := range f.guards {
		r := g.Report()
		counts[r.Health]++
		if text := fmt.Sprintf("%s (%s)", r.Health, codes(r.Verdict)); r.Health != guard.Healthy {
			said[text]++
		}
	}
	for _, text := range slices.Sorted(maps.Keys(said)) {
		if words == "" || said[text] > said[words] {
			words = text
		}
	}
	return counts, words
}

// restarts are those since a time: how many, and the most within one minute.
func (f *fleet) restarts(since time.Time) (total, most int) {
	var all []time.Time
	for _, k := range f.kubelets {
		k.mu.Lock()
		for _, at := range k.restarts {
			if at.After(since) {
				all = append(all, at)
			}
		}
		k.mu.Unlock()
	}
	for _, from := range all {
		within := 0
		for _, at := range all {
			if !at.Before(from) && at.Sub(from) < time.Minute {
				within++
			}
		}
		most = max(most, within)
	}
	return len(all), most
}

const webhookName = "refuses.example.com"

// refuse has a webhook that does not exist refuse every write.
func (f *fleet) refuse(ctx context.Context) error {
	fail, none, scope, url := admissionv1.Fail, admissionv1.SideEffectClassNone, admissionv1.AllScopes, "https://127.0.0.1:1/"
	_, err := f.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookName},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: webhookName, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll},
				Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: &scope}}},
		}},
	}, metav1.CreateOptions{})
	return err
}

// accept takes the webhook away.
func (f *fleet) accept(ctx context.Context) error {
	err := f.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, webhookName, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// upgrade gives every node another kubelet.
func (f *fleet) upgrade(v version) {
	for _, k := range f.kubelets {
		k.upgrade(v)
	}
}
