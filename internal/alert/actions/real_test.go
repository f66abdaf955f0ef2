//go:build real

package actions

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
	"github.com/statusd/statusd/internal/alert/ruleset"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }

func about(pod *v1.Pod) *engine.ActionRequest {
	return &engine.ActionRequest{Alert: alert.Alert{Rule: "Stuck", Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID}, Action: ruleset.Action{Kind: ruleset.ActionEvict}}
}

// The Node authorizer lets a node evict its own pods, and no others.
func TestRealServer_ANodeEvictsItsOwnPodsAndDisruptionBudgetsHold(t *testing.T) {
	server := shared.Server(t)
	namespace, node := server.Namespace(t), "evictor"
	client := server.Node(t, node)
	evict := Evict(client)
	mine := controlplanetest.Pod(namespace, "mine", node)
	mine.Labels = map[string]string{"app": "mine"}
	mine = server.CreatePod(t, mine)
	controlplanetest.AwaitOwn(t, client, mine)
	setRunning(t, server, mine)
	budget, err := server.Admin().PolicyV1().PodDisruptionBudgets(namespace).Create(t.Context(), &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"},
		Spec:       policy.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 1}, Selector: &metav1.LabelSelector{MatchLabels: mine.Labels}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	allow := func(n int32) {
		t.Helper()
		budget.Status = policy.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: n, CurrentHealthy: 1 + n, DesiredHealthy: 1, ExpectedPods: 1 + n}
		if budget, err = server.Admin().PolicyV1().PodDisruptionBudgets(namespace).UpdateStatus(t.Context(), budget, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	allow(0)
	_, err = evict(t.Context(), about(mine))
	if later := (*LaterError)(nil); !errors.As(err, &later) || !strings.Contains(err.Error(), "disruption budget") {
		t.Fatalf("against a budget: %v, want that it is tried later", err)
	}
	other := about(mine)
	other.Alert.UID = types.UID("of-a-pod-before")
	if _, err = evict(t.Context(), other); !isRefused(err) {
		t.Errorf("another UID: %v, want it refused", err)
	}
	allow(1)
	if message, err := evict(t.Context(), about(mine)); err != nil || message != "evicted" {
		t.Fatalf("within the budget: %q, %v", message, err)
	}
	if pod := server.GetPod(t, namespace, "mine"); pod != nil && pod.DeletionTimestamp == nil {
		t.Error("the pod is not being deleted")
	}
	if _, err = evict(t.Context(), about(mine)); !isRefused(err) {
		t.Errorf("again: %v, want it refused, since the pod is going", err)
	}

	foreign := server.CreatePod(t, controlplanetest.Pod(namespace, "foreign", "elsewhere"))
	if _, err := evict(t.Context(), about(foreign)); err == nil || isRefused(err) {
		t.Errorf("a pod of another node: %v, want the API server to forbid it", err)
	}
}

func isRefused(err error) bool {
	refused := (*RefusedError)(nil)
	return errors.As(err, &refused)
}

func setRunning(t *testing.T, server *controlplanetest.Server, pod *v1.Pod) {
	t.Helper()
	pod = pod.DeepCopy()
	pod.Status.Phase = v1.PodRunning
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	if _, err := server.Admin().CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// What a node may do to its own Node object: cordon it, but not taint it. With the documented role both work.
func TestRealServer_WhoMayTaintAndCordon(t *testing.T) {
	server := shared.Server(t)
	const node, taint = "marked", "example.com/bad=yes:NoSchedule"
	own := NodeMarks{Client: server.Node(t, node), Node: node}
	if changed, err := own.Set(t.Context(), cordon); err != nil || !changed {
		t.Errorf("a node cordons itself: %v, %v", changed, err)
	}
	if err := own.Unset(t.Context(), cordon); err != nil {
		t.Errorf("a node takes its cordon back: %v", err)
	}
	if _, err := own.Set(t.Context(), taint); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("a node taints itself: %v, want the API server to forbid it", err)
	}

	account := NodeMarks{Client: withRole(t, server, documentedRole()), Node: node}
	if changed, err := account.Set(t.Context(), taint); err != nil || !changed {
		t.Fatalf("with the documented role: %v, %v", changed, err)
	}
	if changed, err := account.Set(t.Context(), taint); err != nil || changed {
		t.Errorf("a taint that is there: %v, %v; want no change", changed, err)
	}
	here, err := server.Admin().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil || !slices.ContainsFunc(here.Spec.Taints, func(t v1.Taint) bool { return t.Key == "example.com/bad" && t.Value == "yes" }) {
		t.Errorf("taints are %+v, %v", here.Spec.Taints, err)
	}
	if err := account.Unset(t.Context(), taint); err != nil {
		t.Error(err)
	}
}

// documentedRole is that of docs/use/alerts.md: what the credentials of rules.actionsKubeconfig need.
func documentedRole() []rbac.PolicyRule {
	return []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
	}
}

// withRole is a client that has a role and nothing else, once the server knows of it.
func withRole(t *testing.T, server *controlplanetest.Server, role []rbac.PolicyRule) kubernetes.Interface {
	t.Helper()
	name := server.Namespace(t) // unique
	if _, err := server.Admin().RbacV1().ClusterRoles().Create(t.Context(), &rbac.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: role}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Admin().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbac.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbac.Subject{{APIGroup: rbac.GroupName, Kind: rbac.UserKind, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server.AwaitAllowed(t, name, nil, actions(role)...)
	config := server.Process.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// actions are what the rules of a role allow.
func actions(role []rbac.PolicyRule) (all []authorization.ResourceAttributes) {
	for _, rule := range role {
		for _, verb := range rule.Verbs {
			resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
			all = append(all, authorization.ResourceAttributes{Verb: verb, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource})
		}
	}
	return all
}

func TestRealServer_TheDocumentedRoleEvicts(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	pod := server.CreatePod(t, controlplanetest.Pod(namespace, "any", "evicted-here"))
	if _, err := Evict(withRole(t, server, documentedRole()))(t.Context(), about(pod)); err != nil {
		t.Error(err)
	}
	static := server.CreatePod(t, controlplanetest.Pod(namespace, "ordinary", "evicted-here"))
	static.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	if _, err := Evict(withRole(t, server, documentedRole()[:1]))(t.Context(), about(static)); err == nil || isRefused(err) {
		t.Errorf("without the right to read pods: %v, want the API server to forbid it", err)
	}
}
