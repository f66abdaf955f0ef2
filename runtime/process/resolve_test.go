package process

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}[name]
		return value, ok
	}
	for in, want := range map[string]string{
		"":             "",
		"plain":        "plain",
		"$(A)":         "1",
		"x$(A)y$(A)":   "x1y1",
		"$(B)":         "$(A)", // once is enough
		"[$(EMPTY)]":   "[]",
		"$(MISSING)":   "$(MISSING)",
		"$$(A)":        "$(A)",
		"$$$(A)":       "$1",
		"$$$$(A)":      "$$(A)",
		"$A ${A} $":    "$A ${A} $",
		"$(A":          "$(A",
		"$($(A))":      "$(1)",
		"$()":          "$()",
		"100$ $(A) $$": "100$ 1 $",
	} {
		if got := runtime.Expand(in, lookup); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// A text in which every $ is doubled comes out as it was, whatever is defined.
func TestExpandUndoesDoubling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab$()]*`).Draw(t, "text")
		everything := func(string) (string, bool) { return "defined", true }
		if got := runtime.Expand(strings.ReplaceAll(text, "$", "$$"), everything); got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
	})
}

func TestStopSignals(t *testing.T) {
	for name, want := range map[v1.Signal]syscall.Signal{
		v1.SIGTERM: syscall.SIGTERM, v1.SIGKILL: syscall.SIGKILL, v1.SIGWINCH: syscall.SIGWINCH,
		"SIGRTMIN": 34, "SIGRTMIN+3": 37, "SIGRTMAX": 64, "SIGRTMAX-14": 50, "SIGRTMIN+99": 0, "SIGNONE": 0,
	} {
		if got := signalNumber(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

func TestUserOfAContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		// Nobody else is offered then: TestWithoutRootNoOtherUserIsOffered.
		user, err := resolveUser(nil, &v1.SecurityContext{RunAsUser: ptr(int64(os.Geteuid()))})
		if user != nil || err != nil {
			t.Errorf("got %v, %v; want our own user", user, err)
		}
		return
	}
	type pod = v1.PodSecurityContext
	type container = v1.SecurityContext
	strict := v1.SupplementalGroupsPolicyStrict
	for _, c := range []struct {
		story     string
		pod       *pod
		container *container
		want      *record.User
		wantErr   error
	}{
		{"nothing asked", nil, nil, nil, nil},
		{"a user that the machine does not know", &pod{RunAsUser: ptr(int64(77777))}, nil, &record.User{UID: 77777, GID: 77777}, nil},
		{"the container overrides the pod", &pod{RunAsUser: ptr(int64(77777))}, &container{RunAsUser: ptr(int64(88888)), RunAsGroup: ptr(int64(9))},
			&record.User{UID: 88888, GID: 9}, nil},
		{"groups of the pod", &pod{RunAsUser: ptr(int64(77777)), FSGroup: ptr(int64(5)), SupplementalGroups: []int64{7, 5, 6}}, nil,
			&record.User{UID: 77777, GID: 77777, Groups: []uint32{5, 6, 7}}, nil},
		{"groups only", &pod{SupplementalGroups: []int64{7}, SupplementalGroupsPolicy: &strict}, nil, &record.User{Groups: []uint32{7}}, nil},
		{"root refused", &pod{RunAsNonRoot: ptr(true)}, nil, nil, errRunsAsRoot},
		{"root refused in the container", nil, &container{RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(0))}, nil, errRunsAsRoot},
		{"root refused, and it is not root", &pod{RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(77777))}, nil, &record.User{UID: 77777, GID: 77777}, nil},
		{"root allowed by the container", &pod{RunAsNonRoot: ptr(true)}, &container{RunAsNonRoot: ptr(false)}, nil, nil},
	} {
		got, err := resolveUser(c.pod, c.container)
		if !errors.Is(err, c.wantErr) || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, %v; want %v, %v", c.story, got, err, c.want, c.wantErr)
		}
	}
}

func TestAContainerRunsAsItsUser(t *testing.T) {
	uid, gid := int64(os.Geteuid()), int64(os.Getegid())
	if uid == 0 {
		uid, gid = 77777, 88888
	}
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", fmt.Sprintf(`echo $(id -u) $(id -g) > %s; echo bye > $STATUSD_TERMINATION_LOG; echo x > $STATUSD_MOUNT_DATA/file`, h.pipe))
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: &uid, RunAsGroup: &gid, RunAsNonRoot: ptr(uid != 0)}
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	openTheWay(t, h.dir)
	h.start(t, pod)
	if got, want := h.hear(t), fmt.Sprint(uid, " ", gid); got != want {
		t.Errorf("runs as %s, want %s", got, want)
	}
	if c := h.awaitExit(t, "pod"); c.ExitCode != 0 || c.Message != "bye\n" {
		t.Errorf("got %+v, want it to reach its volume and its termination log", c)
	}
}

// openTheWay lets other users pass to a directory of the test.
func openTheWay(t *testing.T, dir string) {
	for dir != os.TempDir() && dir != "/" {
		info, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, info.Mode().Perm()|0o011)
		}
		if err != nil {
			t.Fatal(err)
		}
		dir = dir[:strings.LastIndexByte(dir, '/')]
	}
}

func TestRootIsRefusedWithTheKubeletsWords(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", "exit 0")
	pod.Spec.Containers[0].SecurityContext = &v1.SecurityContext{RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(0))}
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id, err := h.StartContainer(t.Context(), pod, container0(pod), 0)
	start, ok := errors.AsType[*runtime.StartError](err)
	want := `container has runAsNonRoot and image will run as root (pod: "pod_default(pod)", container: main)`
	if !ok || id != "" || start.Reason != runtime.WaitingConfigError || start.Error() != want {
		t.Errorf("got %q, %v; want CreateContainerConfigError: %s", id, err, want)
	}
}
