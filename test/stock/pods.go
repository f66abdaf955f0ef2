package stock

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod is a pod for the node, with one container "main" that runs a shell script. It uses the host's network and
// ends at once on SIGTERM.
func (n *Node) Pod(name, script string) *v1.Pod {
	grace, token := int64(0), false
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: v1.PodSpec{
			NodeName: n.Name, HostNetwork: true, TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &token,
			Containers: []v1.Container{{
				Name: "main", Image: Image, ImagePullPolicy: v1.PullNever, Command: []string{"/bin/sh", "-c", script},
			}},
		},
	}
}

// Forever is a script that runs until it is killed.
const Forever = "while :; do sleep 1000; done"

// Create creates a pod, as soon as its namespace lets pods in.
func (n *Node) Create(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	var created *v1.Pod
	err := Await(ctx, func() error {
		var err error
		created, err = n.admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	return created, err
}

// AwaitPod returns the pod as soon as the API has it as wanted.
func (n *Node) AwaitPod(ctx context.Context, namespace, name, what string, wanted func(*v1.Pod) bool) (*v1.Pod, error) {
	var pod *v1.Pod
	err := Await(ctx, func() error {
		var err error
		if pod, err = n.admin.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !wanted(pod) {
			return fmt.Errorf("pod %s/%s is not %s", namespace, name, what)
		}
		return nil
	})
	return pod, err
}

// Ready reports whether the pod has condition Ready.
func Ready(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
