package process

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime/process/internal/confine"
)

// confinedPod runs as a user that the machine does not know, with all that a namespace of the
// strictest level asks for.
func confinedPod(script string) *v1.Pod {
	pod := scriptPod("pod", script)
	pod.Spec.HostNetwork, pod.Spec.HostPID, pod.Spec.HostIPC = true, true, true
	uid := int64(os.Geteuid())
	if uid == 0 {
		uid = 77777
	}
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsNonRoot: ptr(uid != 0), RunAsUser: &uid,
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}}
	container0(pod).SecurityContext = &v1.SecurityContext{
		AllowPrivilegeEscalation: ptr(false), Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
	}
	return pod
}

// report is what a process says about itself: the lines of its status that matter.
const report = `grep -E '^(NoNewPrivs|Seccomp|CapBnd|CapEff|CapPrm|CapInh|CapAmb):' /proc/self/status | tr '\n\t' ' :'`

func hasAll(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: got %s, want %s", what, got, w)
		}
	}
}

// What the container is kept from, a command that is executed in it is kept from too.
func TestAConfinedContainerHasNothingToGain(t *testing.T) {
	h := newHost(t)
	h.open(t)
	openTheWay(t, h.dir)
	pod := confinedPod(report + ` > ` + h.pipe + `; echo > ` + h.pipe + `; unshare --user true 2> /dev/null && echo gained > ` + h.pipe + ` || echo denied > ` + h.pipe + `; exec sleep 1000000`)
	if found := h.Check(pod); len(found) > 0 {
		t.Fatalf("rejected: %v", found)
	}
	id := h.start(t, pod)
	want := []string{"NoNewPrivs::1", "Seccomp::2", "CapEff::0000000000000000", "CapPrm::0000000000000000", "CapInh::0000000000000000", "CapAmb::0000000000000000"}
	if os.Geteuid() == 0 {
		want = append(want, "CapBnd::0000000000000000")
	}
	hasAll(t, "the container", h.hear(t), want...)
	if got := h.hear(t); got != "denied" {
		t.Errorf("the container has %s a user namespace", got)
	}
	result, err := h.Exec(context.Background(), id, []string{"/bin/sh", "-c", report})
	if err != nil {
		t.Fatal(err)
	}
	hasAll(t, "a command in it", string(result.Output), want...)
	// The threads of this process are as they were.
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t0") || !strings.Contains(string(status), "Seccomp:\t0") {
		t.Errorf("the runtime itself is confined now: %v\n%s", err, status)
	}
}

func TestNamesOfCapabilities(t *testing.T) {
	for name, want := range map[string]uint64{"CHOWN": 1, "CAP_CHOWN": 1, "cap_kill": 1 << 5, "ALL": confine.All, "CHECKPOINT_RESTORE": 1 << 40} {
		if got, known := confine.Capability(name); got != want || !known {
			t.Errorf("%s: got %x, %t", name, got, known)
		}
	}
	if _, known := confine.Capability("FLY"); known {
		t.Error("FLY is known")
	}
}

// A pod that does not ask for the machine's namespaces expects to be isolated.
func TestAPodThatExpectsIsolationIsRejected(t *testing.T) {
	isolated := plainPod()
	isolated.Spec.HostPID, isolated.Spec.HostIPC = false, false
	if got := check(isolated); !slices.Equal(got, []string{"spec.hostIPC"}) {
		t.Errorf("got %q, want it rejected once", got)
	}
	allowing := ableRuntime()
	allowing.options.AllowPodsWithoutIsolation = true
	if got := checkWith(allowing, isolated); len(got) > 0 {
		t.Errorf("allowed by the configuration: got %q", got)
	}
	isolated.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	if got := check(isolated); len(got) > 0 {
		t.Errorf("a static pod: got %q", got)
	}
	isolated.ResourceVersion = "5"
	if got := check(isolated); len(got) == 0 {
		t.Error("a pod of the API that says that it is static is believed")
	}
}

func TestWithoutRootConfinementNeedsNoNewPrivileges(t *testing.T) {
	plain := ableRuntime()
	plain.root = false
	pod := confinedPod("true")
	pod.Spec.SecurityContext.RunAsUser = ptr(int64(os.Geteuid()))
	if got := checkWith(plain, pod); len(got) > 0 {
		t.Errorf("with allowPrivilegeEscalation: false: got %q", got)
	}
	container0(pod).SecurityContext.AllowPrivilegeEscalation = nil
	want := []string{"spec.containers[0].securityContext.seccompProfile", "spec.containers[0].securityContext.capabilities.drop"}
	if got := checkWith(plain, pod); !slices.Equal(got, want) {
		t.Errorf("without: got %q, want %q", got, want)
	}
}

// A directory that is made for a sub-path has the mode of its volume, whatever the umask is.
func TestASubPathIsAsOpenAsItsVolume(t *testing.T) {
	h := newHost(t)
	h.open(t)
	openTheWay(t, h.dir)
	pod := confinedPod(`touch $STATUSD_MOUNT_DATA/file $STATUSD_MOUNT_MORE/file && stat -c %a $STATUSD_MOUNT_DATA $STATUSD_VOLUME_DATA/a $STATUSD_MOUNT_MORE | tr '\n' ' ' > ` + h.pipe + `; echo > ` + h.pipe)
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	c := container0(pod)
	c.Env = []v1.EnvVar{{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	c.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data", SubPath: "a/b"}, {Name: "data", MountPath: "/more", SubPathExpr: "of-$(POD)"}}
	h.start(t, pod)
	if got := h.hear(t); got != "777 777 777 " {
		t.Errorf("modes %q", got)
	}
	if _, err := os.Stat(h.podDir("pod").volume("data") + "/of-pod/file"); err != nil {
		t.Error(err)
	}
}

// All containers are in the PID namespace of the machine, with shareProcessNamespace or without.
func TestContainersSeeEachOther(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", fmt.Sprintf(`cat /proc/%d/comm > %s`, os.Getpid(), h.pipe))
	pod.Spec.ShareProcessNamespace = ptr(true)
	h.start(t, pod)
	own, err := os.ReadFile("/proc/self/comm")
	if got := h.hear(t); err != nil || got+"\n" != string(own) {
		t.Errorf("the container sees %q, %v; want this test, %q", got, err, own)
	}
}
