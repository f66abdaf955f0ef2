//go:build real

package controlplane_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// whoAmI is the user that the server takes the client for.
func whoAmI(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("who am I: %v", err)
	}
	return review.Status.UserInfo.Username
}

func patchPhase(t *testing.T, client kubernetes.Interface, pod *v1.Pod) error {
	t.Helper()
	_, err := client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"phase":"Running"}}`), metav1.PatchOptions{}, "status")
	return err
}

func TestNodeUserWritesStatusOfItsOwnPodsOnly(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	node := server.Node(t, "own")
	server.Node(t, "other")
	own := server.CreatePod(t, controlplanetest.Pod(namespace, "own", "own"))
	foreign := server.CreatePod(t, controlplanetest.Pod(namespace, "foreign", "other"))

	if err := patchPhase(t, node, own); err != nil {
		t.Errorf("node patches the status of its own pod: got %v, want no error", err)
	}
	if phase := server.GetPod(t, namespace, "own").Status.Phase; phase != v1.PodRunning {
		t.Errorf("phase of the node's own pod: got %s, want Running", phase)
	}
	if err := patchPhase(t, node, foreign); !apierrors.IsForbidden(err) {
		t.Errorf("node patches the status of another node's pod: got %v, want 403 of NodeRestriction", err)
	}
	if phase := server.GetPod(t, namespace, "foreign").Status.Phase; phase != v1.PodPending {
		t.Errorf("phase of another node's pod: got %s, want Pending", phase)
	}
}

func TestNodeUserMayOnlyWhatTheNodeAuthorizerGrants(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	node := server.Node(t, "authorized")
	server.Node(t, "unauthorized")

	list := func(nodeName string) error {
		_, err := node.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName})
		return err
	}
	if err := list("authorized"); err != nil {
		t.Errorf("node lists its own pods: got %v, want no error", err)
	}
	if err := list("unauthorized"); !apierrors.IsForbidden(err) {
		t.Errorf("node lists the pods of another node: got %v, want 403 of the Node authorizer", err)
	}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "unrelated", Namespace: namespace}}
	if _, err := server.Admin().CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatalf("admin creates a secret: %v", err)
	}
	if _, err := node.CoreV1().Secrets(namespace).Get(t.Context(), "unrelated", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("node reads a secret that none of its pods uses: got %v, want 403 of the Node authorizer", err)
	}
}

func TestNodeClientIsTheNodeUser(t *testing.T) {
	server := shared.Server(t)
	if got := whoAmI(t, server.Node(t, "named")); got != "system:node:named" {
		t.Errorf("got user %q, want system:node:named", got)
	}
}

// ServiceAccount admission is on, as in every cluster: a pod that does not say otherwise gets the
// token of its service account as a volume, and the node of the pod may request that token.
func TestPodsGetTheirServiceAccountToken(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	node := server.Node(t, "tokens")
	pod := controlplanetest.Pod(namespace, "ordinary", "tokens")
	pod.Spec.AutomountServiceAccountToken = nil
	pod = server.CreatePod(t, pod)
	if pod.Spec.ServiceAccountName != "default" || len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].Projected == nil {
		t.Fatalf("got service account %q and volumes %v, want the default one and its token", pod.Spec.ServiceAccountName, pod.Spec.Volumes)
	}
	// The Node authorizer learns of the pod by a watch, some time after its creation was answered.
	server.AwaitAllowed(t, "system:node:tokens", []string{"system:nodes"},
		authorization.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "configmaps", Name: "kube-root-ca.crt"},
		authorization.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: "default"})
	roots, err := node.CoreV1().ConfigMaps(namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil || !strings.Contains(roots.Data["ca.crt"], "BEGIN CERTIFICATE") {
		t.Errorf("the root certificate of the namespace: %v (%v)", roots.Data, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	token, err := node.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "default", request, metav1.CreateOptions{})
	if err != nil || token.Status.Token == "" {
		t.Errorf("the node requests a token for its pod: %v", err)
	}
}
