//go:build real

package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A statusd that has lost its kubeconfig does not take the pods of the API for orphans.
func TestStandaloneOnTheStateOfAClustersNode(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "forgetful").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	marker := uniqueSleep(t)
	server.CreatePod(t, shellPod(namespace, "precious", "forgetful", "exec "+marker))
	history.await("precious", "that it runs", isReady)
	d.stop()

	kubeconfig := d.config.Kubeconfig
	d.config.Kubeconfig = ""
	d.start()
	if err := d.wait(); err == nil || !strings.Contains(d.logged(), "is the state of a node of a cluster") {
		t.Errorf("got %v, want that statusd refuses to start and says why; its log:\n%s", err, d.logged())
	}
	if !running(t, marker) {
		t.Error("the pod of the API was ended")
	}
	d.config.Kubeconfig = kubeconfig
	d.start()
	until(t, "the pod is ready as before", func() bool { return d.ready("precious") })
	d.stop()

	d.config.Kubeconfig, d.flags = "", []string{"--leave-cluster"}
	d.start()
	until(t, "the pod is ended, as --leave-cluster says", func() bool { return !running(t, marker) })
	d.stop()
	if err := server.Admin().CoreV1().Pods(namespace).Delete(t.Context(), "precious", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
