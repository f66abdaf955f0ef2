// Command doors tries each kind of credentials on each path of a stock kubelet's API. Package kubeletapi is compared
// with its answers. Run it in test/upstream/doors, as root; make doors does.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/test/doors"
	"github.com/statusd/statusd/test/upstream/lives/machine"
)

const header = `# The answers of a kubelet v1.36.3 with its default authentication and authorization, but no anonymous access, to
# each kind of credentials (test/doors) on each path. Recorded by make doors.
`

// file is where the answers go.
var file = filepath.Join("..", "..", "..", "kubeletapi", "testdata", "doors.txt")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := record(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "doors:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context) error {
	const agent = "doors"
	if err := machine.Enter(agent); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	m, err := machine.New(ctx, agent)
	if err != nil {
		return err
	}
	config := m.Admin()
	config.QPS = -1
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	fmt.Println("starting a pod")
	if err := startPod(ctx, admin); err != nil {
		return logged(m, err)
	}
	clients, err := doors.Clients(ctx, admin, m.PKI(), machine.NodeName)
	if err != nil {
		return err
	}
	fmt.Println("trying", len(clients), "kinds of credentials on", len(doors.Requests()), "requests")
	answers, err := doors.Try(ctx, m.KubeletAddress(), clients, doors.Requests())
	if err != nil {
		return logged(m, err)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := out.WriteString(header); err != nil {
		return err
	}
	if err := doors.Write(out, answers); err != nil {
		return err
	}
	return out.Close()
}

// startPod makes the pod that the requests name, and returns when its container runs.
func startPod(ctx context.Context, admin kubernetes.Interface) error {
	no := false
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{
			NodeName: machine.NodeName, HostNetwork: true, AutomountServiceAccountToken: &no,
			Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}},
			Containers: []v1.Container{{
				Name: "main", Image: "host", ImagePullPolicy: v1.PullNever,
				Command: []string{"/bin/sh", "-c", "echo hello; while :; do sleep 1000; done"},
			}},
		},
	}
	pods := admin.CoreV1().Pods(pod.Namespace)
	for created := false; ; {
		if !created {
			_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
			created = err == nil // the default service account may not be there yet
		} else if now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{}); err == nil && now.Status.Phase == v1.PodRunning {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the pod does not run: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// logged adds the end of what the kubelet said.
func logged(m *machine.Machine, err error) error {
	content, _ := os.ReadFile(filepath.Join(m.Logs(), "kubelet.log"))
	const end = 4000
	return fmt.Errorf("%w\n%s", err, content[max(0, len(content)-end):])
}
