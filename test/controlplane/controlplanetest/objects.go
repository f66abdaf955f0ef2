package controlplanetest

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/test/patience"
)

// Namespace creates a namespace for this test and returns its name, once pods can be created in it:
// ServiceAccount admission refuses them until the namespace has its default service account. It is
// not deleted: no controller here would empty it, and it ends with the server.
func (s *Server) Namespace(t testing.TB) string {
	t.Helper()
	namespace, err := s.admin.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix(t.Name())},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	s.awaitServiceAccount(t, namespace.Name)
	return namespace.Name
}

// awaitServiceAccount returns when the namespace has its default service account.
func (s *Server) awaitServiceAccount(t testing.TB, namespace string) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	accounts, err := s.admin.CoreV1().ServiceAccounts(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		t.Fatalf("watch service accounts: %v", err)
	}
	defer accounts.Stop()
	if event, ok := <-accounts.ResultChan(); !ok || event.Type == watch.Error {
		t.Fatalf("namespace %s has no default service account: %v %v", namespace, event.Object, context.Cause(ctx))
	}
}

// prefix makes the test's name legal in a namespace's and leaves room for what the server adds.
func prefix(test string) string {
	const longest = 50
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, test)
	return name[:min(len(name), longest)] + "-"
}

// Pod is a pod of one container, bound to the node; change it before CreatePod to taste. It is as other people's are: the API
// server mounts the token of its service account, and its container has a port.
func Pod(namespace, name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.PodSpec{
			NodeName:   node,
			Containers: []v1.Container{{Name: "main", Image: "example.com/main:1", Ports: []v1.ContainerPort{{ContainerPort: 80}}}},
		},
	}
}

// publishAuthority puts the config map into a namespace that the volume with the token of a service account has a part of, as a
// controller of a cluster does.
func (s *Server) publishAuthority(t testing.TB, namespace string) {
	t.Helper()
	_, err := s.admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"},
		Data:       map[string]string{"ca.crt": string(s.Process.AdminConfig().CAData)},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("publish the authority in %s: %v", namespace, err)
	}
}

// CreatePod creates the pod as an administrator and returns the stored pod.
func (s *Server) CreatePod(t testing.TB, pod *v1.Pod) *v1.Pod {
	t.Helper()
	s.publishAuthority(t, pod.Namespace)
	created, err := s.admin.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create pod %s/%s: %v", pod.Namespace, pod.Name, err)
	}
	return created
}

// GetPod reads the pod as an administrator.
func (s *Server) GetPod(t testing.TB, namespace, name string) *v1.Pod {
	t.Helper()
	pod, err := s.admin.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("get pod %s/%s: %v", namespace, name, err)
	}
	return pod
}

func (s *Server) ensureNode(t testing.TB, name string) {
	t.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := s.admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("create node %s: %v", name, err)
	}
}
