//go:build real

package overview_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/overview"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/patience"
)

// inside marks the copy of this program that has a network of its own.
const inside = "STATUSD_FLEET_NETWORK"

// observerAddress is an address of the network of the test. The API server's proxy refuses loopback addresses.
const observerAddress = "192.0.2.7"

// An API server's proxy reaches observers by the addresses of their pods, with the rights that deploy/observe/reader.yaml has.
func TestRealServer_ObserversThroughTheProxy(t *testing.T) {
	if os.Getenv(inside) == "" {
		if os.Getuid() != 0 {
			t.Fatal("a network of its own needs root")
		}
		ctx, cancel := patience.Context(t)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	address(t, "lo", "127.0.0.1")
	address(t, "lo:1", observerAddress)
	listener, err := net.Listen("tcp", observerAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	answer := overviewOf("proxied", guard.Degraded)
	observer := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != overview.Path {
			t.Errorf("asked for %s", r.URL.Path)
		}
		_ = json.NewEncoder(w).Encode(answer)
	})}
	served := make(chan error, 1)
	go func() { served <- observer.Serve(listener) }()
	t.Cleanup(func() { observer.Close(); <-served })

	server := controlplanetest.Start(t)
	admin := server.Admin()
	namespace := server.Namespace(t)
	for _, name := range []string{"proxied", "unobserved"} {
		if _, err := admin.CoreV1().Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod := controlplanetest.Pod(namespace, "observe", "proxied")
	pod.Labels = map[string]string{"app.kubernetes.io/name": "statusd-observe"}
	_, number, _ := net.SplitHostPort(listener.Addr().String())
	port, _ := strconv.Atoi(number)
	pod.Spec.Containers[0].Ports = []v1.ContainerPort{{Name: "metrics", ContainerPort: int32(port)}}
	pod = server.CreatePod(t, pod)
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, PodIP: observerAddress, PodIPs: []v1.PodIP{{IP: observerAddress}}}
	if _, err := admin.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	reader := impersonated(t, server, "operator")
	allow(t, admin, namespace)
	var nodes []overview.Node
	last := func() string { return fmt.Sprintf("%+v, %v", nodes, err) }
	await(t, "the answer of the observer", last, func() bool { // the roles are known by a watch
		nodes, err = overview.Gather(t.Context(), reader, namespace)
		return err == nil && len(nodes) == 2 && nodes[0].Overview != nil
	})
	if n := nodes[0]; n.Name != "proxied" || n.Overview.Guard.Health != guard.Degraded {
		t.Errorf("got %+v", n)
	}
	if n := nodes[1]; n.Name != "unobserved" || n.Problem != "no observer runs there" {
		t.Errorf("got %+v", n)
	}
	// Without the right to the proxy the lists work, and the answer says what is missing.
	if err := admin.RbacV1().Roles(namespace).Delete(t.Context(), "reader-proxy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the refusal", last, func() bool {
		nodes, err = overview.Gather(t.Context(), reader, namespace)
		return err == nil && nodes[0].Problem == "you may not ask its observer: the right to get pods/proxy is missing"
	})
}

// await looks until something is so. The server's authorizer learns of roles by a watch, of which it says nothing.
func await(t *testing.T, what string, last func() string, is func() bool) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	for !is() {
		if ctx.Err() != nil {
			t.Fatalf("%s did not come: %s", what, last())
		}
	}
}

func impersonated(t *testing.T, server *controlplanetest.Server, user string) kubernetes.Interface {
	config := rest.CopyConfig(server.Process.AdminConfig())
	config.Impersonate.UserName = user
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// allow gives the operator the rights that deploy/README.md names.
func allow(t *testing.T, admin kubernetes.Interface, namespace string) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "operator"}}
	nodes := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader-nodes"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}}}
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), nodes, metav1.CreateOptions{})
	if err == nil {
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: nodes.ObjectMeta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: nodes.Name}}, metav1.CreateOptions{})
	}
	for name, rule := range map[string]rbacv1.PolicyRule{
		"reader-pods":  {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		"reader-proxy": {APIGroups: []string{""}, Resources: []string{"pods/proxy"}, Verbs: []string{"get"}},
	} {
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		if err == nil {
			_, err = admin.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
		}
		if err == nil {
			_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, metav1.CreateOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// address gives an interface of the network of the test an address, and starts it.
func address(t *testing.T, name, ip string) {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq(name)
	if err == nil {
		err = request.SetInet4Addr(net.ParseIP(ip).To4())
	}
	if err == nil {
		err = unix.IoctlIfreq(socket, unix.SIOCSIFADDR, request)
	}
	if err == nil {
		request, err = unix.NewIfreq(name)
	}
	if err == nil {
		request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	}
	if err != nil {
		t.Fatalf("address %s of %s: %v", ip, name, err)
	}
}
