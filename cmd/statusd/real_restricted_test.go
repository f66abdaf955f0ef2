//go:build real

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

func ptr[T any](value T) *T { return &value }

// restricted makes a namespace admit only pods of the strictest level of Pod Security.
func restricted(t *testing.T, server *controlplanetest.Server, namespace string) {
	t.Helper()
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	_, err := server.Admin().CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// restrictedPod is a pod as ordinary clusters want them: not root, confined, with a token that
// admission adds, a config map and a secret.
func restrictedPod(namespace, name, node, script string) *v1.Pod {
	pod := shellPod(namespace, name, node, script)
	pod.Spec.AutomountServiceAccountToken = nil
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	uid := int64(os.Geteuid())
	if uid == 0 {
		uid = 10001
	}
	pod.Spec.SecurityContext = &v1.PodSecurityContext{
		RunAsNonRoot: ptr(true), RunAsUser: &uid, SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}
	pod.Spec.Volumes = []v1.Volume{
		{Name: "work", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "settings", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}},
		{Name: "keys", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "keys", DefaultMode: ptr(int32(0o400))}}},
	}
	c := &pod.Spec.Containers[0]
	c.SecurityContext = &v1.SecurityContext{
		AllowPrivilegeEscalation: ptr(false), Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
	}
	c.VolumeMounts = []v1.VolumeMount{
		{Name: "work", MountPath: "/work"},
		{Name: "settings", MountPath: "/etc/settings", ReadOnly: true},
		{Name: "keys", MountPath: "/etc/keys", ReadOnly: true},
	}
	c.EnvFrom = []v1.EnvFromSource{{Prefix: "SETTING_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}}
	return pod
}

// openTheWay lets the users of containers pass to a directory of the test.
func openTheWay(t *testing.T, dir string) {
	t.Helper()
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, info.Mode().Perm()|0o011)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func createObjects(t *testing.T, server *controlplanetest.Server, namespace string) {
	t.Helper()
	settings := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"greeting": "hello"}}
	if _, err := server.Admin().CoreV1().ConfigMaps(namespace).Create(t.Context(), settings, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	keys := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"password": "one"}}
	if _, err := server.Admin().CoreV1().Secrets(namespace).Create(t.Context(), keys, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The pod of an ordinary cluster: Pod Security admits it as restricted, the ServiceAccount plugin
// gives it a token, and it uses a config map and a secret. When the secret changes, its file does.
func TestRestrictedPod_RunsAndFollowsItsSecret(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	restricted(t, server, namespace)
	createObjects(t, server, namespace)
	d := newDaemon(t, "ordinary").join(server)
	openTheWay(t, filepath.Dir(d.config.StateDir))
	d.start()
	history := follow(t, server.Admin(), namespace)

	script := strings.Join([]string{
		"set -e",
		"account=$STATUSD_MOUNT_VAR_RUN_SECRETS_KUBERNETES_IO_SERVICEACCOUNT",
		"test -s $account/token -a -s $account/ca.crt",
		`test "$(cat $account/namespace)" = ` + namespace,
		// Where things can be mounted, clients find it where they expect it.
		`test $(id -u) != 10001 || test "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)" = "$(cat $account/token)"`,
		`test -n "$KUBERNETES_SERVICE_HOST" -a -n "$KUBERNETES_SERVICE_PORT"`,
		`test "$SETTING_greeting" = hello -a "$(cat $STATUSD_MOUNT_ETC_SETTINGS/greeting)" = hello`,
		`test "$(cat $STATUSD_MOUNT_ETC_KEYS/password)" = one`,
		"grep -q '^NoNewPrivs:.1' /proc/self/status",
		// A statusd that is not root has no capabilities to take away.
		"grep -q '^CapBnd:.0000000000000000' /proc/self/status || test $(id -u) != 10001",
		"grep -q '^Seccomp:.2' /proc/self/status",
		"touch $STATUSD_MOUNT_WORK/ready",
		`until test "$(cat $STATUSD_MOUNT_ETC_KEYS/password)" = two; do sleep 0.05; done`,
	}, "\n")
	pod := restrictedPod(namespace, "ordinary", "ordinary", script)
	c := &pod.Spec.Containers[0]
	c.ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{
		Exec: &v1.ExecAction{Command: []string{"/bin/sh", "-c", "test -e $STATUSD_MOUNT_WORK/ready"}},
	}}
	server.CreatePod(t, pod)
	history.await("ordinary", "that it is ready", func(_ watch.EventType, pod *v1.Pod) bool {
		if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Terminated != nil {
			t.Fatalf("the container ended: %+v", pod.Status.ContainerStatuses[0].State.Terminated)
		}
		return condition(pod, v1.PodReady) == "True"
	})

	patch := []byte(`{"stringData":{"password":"two"}}`)
	if _, err := server.Admin().CoreV1().Secrets(namespace).Patch(t.Context(), "keys", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	history.await("ordinary", "that it has seen the new password", func(_ watch.EventType, pod *v1.Pod) bool {
		return pod.Status.Phase == v1.PodSucceeded
	})
	d.stop()
}

// A config map that is not there keeps the pod waiting, as in any cluster; when it comes, the pod runs.
func TestAPodWaitsForItsConfigMap(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	d := newDaemon(t, "patient").join(server)
	d.start()
	history := follow(t, server.Admin(), namespace)
	pod := shellPod(namespace, "patient", "patient", `test "$(cat $STATUSD_MOUNT_ETC_SETTINGS/greeting)" = hello && sleep 1000000`)
	pod.Spec.Volumes = []v1.Volume{{Name: "settings", VolumeSource: v1.VolumeSource{
		ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}},
	}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}}
	server.CreatePod(t, pod)
	until(t, "the event that says what it waits for", func() bool {
		return hasEvent(t, server, namespace, "FailedMount", `MountVolume.SetUp failed for volume "settings" : configmap "settings" not found`)
	})
	history.await("patient", "that its container is created", func(_ watch.EventType, pod *v1.Pod) bool {
		all := pod.Status.ContainerStatuses
		return len(all) == 1 && stateWord(all[0].State) == "waiting(ContainerCreating)"
	})
	createObjects(t, server, namespace)
	history.await("patient", "that it runs", isReady)
	d.stop()
}

func hasEvent(t *testing.T, server *controlplanetest.Server, namespace, reason, message string) bool {
	t.Helper()
	list, err := server.Admin().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if event.Reason == reason && event.Message == message {
			return true
		}
	}
	return false
}

// The example is what it says, but for the namespace and the node of this test.
func TestTheRestrictedExampleIsReady(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	restricted(t, server, namespace)
	d := newDaemon(t, "example").join(server)
	openTheWay(t, filepath.Dir(d.config.StateDir))
	d.start()
	history := follow(t, server.Admin(), namespace)
	text, err := os.ReadFile("../../examples/restricted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	decode := func(i int, object any) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(documents[i]), object); err != nil {
			t.Fatal(err)
		}
	}
	var settings v1.ConfigMap
	var keys v1.Secret
	var pod v1.Pod
	decode(1, &settings)
	decode(2, &keys)
	decode(3, &pod)
	settings.Namespace, keys.Namespace, pod.Namespace, pod.Spec.NodeName = namespace, namespace, namespace, "example"
	if os.Geteuid() != 0 {
		pod.Spec.SecurityContext.RunAsUser = nil
	}
	if _, err := server.Admin().CoreV1().ConfigMaps(namespace).Create(t.Context(), &settings, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Admin().CoreV1().Secrets(namespace).Create(t.Context(), &keys, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server.CreatePod(t, &pod)
	history.await("ordinary", "that it is ready", isReady)
	d.stop()
}
