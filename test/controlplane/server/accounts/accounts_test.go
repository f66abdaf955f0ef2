package accounts

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
)

// Every namespace gets its service account and the certificate, and gets them again when they are
// deleted or changed.
func TestEveryNamespaceHasAServiceAccountAndTheRootCA(t *testing.T) {
	client := fake.NewClientset(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
	ctx := t.Context()
	accounts, err := client.CoreV1().ServiceAccounts("").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps, err := client.CoreV1().ConfigMaps("").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- New(client, []byte("certificate")).Run(running) }()

	await(accounts, "old")
	await(maps, "old")
	if _, err := client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(accounts, "new")
	await(maps, "new")

	if err := client.CoreV1().ServiceAccounts("new").Delete(ctx, ServiceAccount, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(accounts, "new")
	wrong := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: RootCA}, Data: map[string]string{rootCAKey: "forged"}}
	if _, err := client.CoreV1().ConfigMaps("new").Update(ctx, wrong, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(maps, "new")

	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// await waits until an object of a namespace is as it should be; the bound is the test's own.
func await(events watch.Interface, namespace string) {
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			continue
		}
		switch o := event.Object.(type) {
		case *v1.ServiceAccount:
			if o.Namespace == namespace && o.Name == ServiceAccount {
				return
			}
		case *v1.ConfigMap:
			if o.Namespace == namespace && o.Name == RootCA && o.Data[rootCAKey] == "certificate" {
				return
			}
		}
	}
}
