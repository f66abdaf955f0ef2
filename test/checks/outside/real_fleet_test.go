//go:build real

package outside

import (
	"context"
	"os"
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

// Programs of other modules are a fleet of 20 nodes, a node with a runtime of its own and a node of a provider. On each of them a Deployment
// as people write it is scheduled, becomes available, and is scaled to nothing.
func TestOrdinaryDeploymentsOutsideThisModule(t *testing.T) {
	source := example(t, "fleet")
	if lines := codeLines(source); lines > longest {
		t.Errorf("examples/fleet has %d lines of code, want at most %d", lines, longest)
	}
	server := controlplanetest.StartCluster(t, 0)
	admin, namespace := server.Admin(), server.Namespace(t)
	launch(t, scratch(t, "fleet", source), server.Process.AdminKubeconfig(), "outside-fleet-", "20")
	for _, single := range []struct {
		name   string
		source []byte
		more   []string
	}{
		{"node", withoutEvictions(t, example(t, "node")), nil},
		{"provider", example(t, "provider"), []string{t.TempDir()}},
	} {
		kubeconfig, err := server.Process.NodeKubeconfig("outside-" + single.name)
		if err != nil {
			t.Fatal(err)
		}
		launch(t, scratch(t, single.name, single.source), append([]string{kubeconfig, "outside-" + single.name}, single.more...)...)
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	deployments := admin.AppsV1().Deployments(namespace)
	replicas := map[string]int32{"fleet": 60, "node": 3, "provider": 3}
	for name, n := range replicas {
		d := ordinaryDeployment(name, n)
		if name != "fleet" {
			spec := &d.Spec.Template.Spec
			spec.TopologySpreadConstraints, spec.NodeSelector = nil, map[string]string{v1.LabelHostname: "outside-" + name}
			spec.Tolerations = []v1.Toleration{{Key: "statusd/embedded", Operator: v1.TolerationOpExists}}
		}
		if _, err := deployments.Create(ctx, d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, n := range replicas {
		until(ctx, t, "the pods of "+name+" are available", func() bool {
			d, err := deployments.Get(ctx, name, metav1.GetOptions{})
			return err == nil && d.Status.AvailableReplicas == n
		})
	}
	pods, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=fleet"})
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
	if err != nil || len(leases.Items) != 22 {
		t.Errorf("%d leases (%v), want 22", len(leases.Items), err)
	}
	for name := range replicas {
		if _, err := deployments.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until(ctx, t, "all pods are gone", func() bool {
		left, err := admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 0
	})
}

func example(t *testing.T, name string) []byte {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, "examples", name, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	return source
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
						NodeTaintsPolicy: new(v1.NodeInclusionPolicyHonor),
					}},
				},
			},
		},
	}
}
