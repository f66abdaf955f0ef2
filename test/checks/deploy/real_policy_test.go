//go:build real

package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/guard/fleet"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/stock"
)

const account = "system:serviceaccount:statusd:statusd-observe"

// With all rights that the manifests can give, an observer writes about its own node alone.
func TestObserverWritesAboutItsOwnNodeOnly(t *testing.T) {
	server := controlplanetest.Start(t)
	ctx := stock.Context(t)
	a := newApplier(t, server.Process.AdminConfig())
	for _, o := range objects(t, "namespace.yaml", "rbac.yaml", "policy.yaml", "writer.yaml", "../repair/rights.yaml", "../guard/rights.yaml") {
		if err := a.Apply(ctx, o, false); err != nil {
			t.Fatal(err)
		}
	}
	namespace := server.Namespace(t)
	for _, node := range []string{"own", "other"} {
		server.Node(t, node)
		server.CreatePod(t, controlplanetest.Pod(namespace, node, node))
	}
	of := func(node string) kubernetes.Interface { return observerOf(t, server.Process.AdminConfig(), node) }
	condition := func(ctx context.Context, c kubernetes.Interface, node string) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"StatusTruthful","status":"True"}]}}`), metav1.PatchOptions{}, "status")
		return err
	}
	status := func(ctx context.Context, c kubernetes.Interface, pod string) error {
		_, err := c.CoreV1().Pods(namespace).Patch(ctx, pod, types.StrategicMergePatchType,
			[]byte(`{"status":{"reason":"Repaired"}}`), metav1.PatchOptions{}, "status")
		return err
	}
	lease := func(ctx context.Context, c kubernetes.Interface, node string, dry ...string) error {
		_, err := c.CoordinationV1().Leases(v1.NamespaceNodeLease).Patch(ctx, node, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"statusd/dry-run":"now"}}}`), metav1.PatchOptions{DryRun: dry})
		return err
	}
	for _, node := range []string{"own", "other"} {
		_, err := server.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	slot := func(ctx context.Context, node string) error {
		s := fleet.New(fleet.Options{Leases: of(node).CoordinationV1().Leases("statusd"), Node: node, Nodes: fleet.Count(of(node))})
		return errors.Join(s.Acquire(ctx, "ProcessGone"), s.Release(ctx))
	}
	event := func(ctx context.Context, node, host string) error {
		_, err := of(node).CoreV1().Events(namespace).Create(ctx, &v1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: namespace},
			InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "own"}, Source: v1.EventSource{Component: "statusd", Host: host}}, metav1.CreateOptions{})
		return err
	}
	// The API server takes a moment to obey a policy that is new.
	if err := stock.Await(ctx, func() error { return denied(condition(ctx, of("own"), "other")) }); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"condition of another node":                func() error { return denied(condition(ctx, of("own"), "other")) },
		"condition without a node in the token":    func() error { return denied(condition(ctx, of(""), "own")) },
		"condition of its own node":                func() error { return condition(ctx, of("own"), "own") },
		"status of a pod of another node":          func() error { return denied(status(ctx, of("own"), "other")) },
		"status of a pod of its own node":          func() error { return status(ctx, of("own"), "own") },
		"lease of its own node, dry run":           func() error { return lease(ctx, of("own"), "own", metav1.DryRunAll) },
		"lease of its own node":                    func() error { return denied(lease(ctx, of("own"), "own")) },
		"lease of another node, dry run":           func() error { return denied(lease(ctx, of("own"), "other", metav1.DryRunAll)) },
		"a slot for a restart":                     func() error { return slot(ctx, "own") },
		"an Event of its own":                      func() error { return event(ctx, "own", "own") },
		"an Event in the name of another node":     func() error { return denied(event(ctx, "own", "other")) },
		"condition by an administrator, elsewhere": func() error { return condition(ctx, server.Admin(), "other") },
	} {
		if err := stock.Await(ctx, try); err != nil { // it takes a moment to obey new roles, too
			t.Errorf("%s: %v", name, err)
		}
	}
}

// denied turns a refusal by the policy into success, and everything else into an error.
func denied(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		if strings.Contains(err.Error(), "statusd-observe-own-node") {
			return nil
		}
	}
	return errors.Join(errors.New("want a refusal by the policy"), err)
}

// observerOf is a client with what the API server makes of the token of an observer's pod on that node.
func observerOf(t testing.TB, config *rest.Config, node string) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:statusd", "system:authenticated"}}
	if node != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(fmt.Errorf("client: %w", err))
	}
	return client
}
