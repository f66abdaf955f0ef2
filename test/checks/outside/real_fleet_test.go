//go:build real

package outside

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// A program of another module is a fleet of 20 nodes, on which a Deployment as people write it is scheduled, becomes available,
// and is scaled to nothing.
func TestFleetOutsideThisModule(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "examples", "fleet", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := codeLines(source); lines > longest {
		t.Errorf("examples/fleet has %d lines of code, want at most %d", lines, longest)
	}
	dir, server := scratch(t, "fleet", source), controlplanetest.StartCluster(t, 0)
	admin, namespace := server.Admin(), server.Namespace(t)
	command := exec.Command(filepath.Join(dir, "program"), server.Process.AdminKubeconfig(), "outside-fleet-", "20")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt) // it may have ended already
		if err := command.Wait(); err != nil {
			t.Errorf("fleet: %v", err)
		}
		if t.Failed() {
			t.Logf("fleet:\n%s", output.String())
		}
	})
	ctx, cancel := patience.Context(t)
	defer cancel()
	deployments := admin.AppsV1().Deployments(namespace)
	if _, err := deployments.Create(ctx, ordinaryDeployment("web", 60), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "60 pods are available", func() bool {
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 60
	})
	pods, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, pod := range pods.Items {
		used[pod.Spec.NodeName] = true
	}
	if len(used) != 20 {
		t.Errorf("the pods are on %d nodes, want all 20", len(used))
	}
	leases, err := admin.CoordinationV1().Leases(v1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil || len(leases.Items) != 20 {
		t.Errorf("%d leases (%v), want 20", len(leases.Items), err)
	}
	if _, err := deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "all pods are gone", func() bool {
		left, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 0
	})
}

// until looks until it is so.
func until(ctx context.Context, t *testing.T, want string, is func() bool) {
	t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so in time: %s", want)
		case <-look.C:
		}
	}
}

// ordinaryDeployment has what people write: resources, probes, environment, and the mounted token of its service account.
func ordinaryDeployment(name string, replicas int32) *apps.Deployment {
	labels := map[string]string{"app": name}
	small := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m"), v1.ResourceMemory: resource.MustParse("1Mi")}
	return &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{
					Containers: []v1.Container{{
						Name: "main", Image: "registry.example/" + name + ":1.0", Env: []v1.EnvVar{{Name: "MODE", Value: "production"}},
						Ports:     []v1.ContainerPort{{Name: "http", ContainerPort: 8080}},
						Resources: v1.ResourceRequirements{Requests: small, Limits: small},
					}},
					TopologySpreadConstraints: []v1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
				},
			},
		},
	}
}
