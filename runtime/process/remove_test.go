package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

// removeArgument makes the test binary remove a directory, as the user that runs it.
const removeArgument = "process-test-remove"

func removeMain(dir string) int {
	if err := removeAll(dir); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func (h *host) removeWith(remove func(string) error) {
	h.cleaner.mu.Lock()
	defer h.cleaner.mu.Unlock()
	h.cleaner.remove = remove
}

// A pod whose files cannot be deleted is gone all the same, keeps no statusd from
// starting, and is reported until its files are gone.
func TestWhatCannotBeDeletedIsReportedAndTriedAgain(t *testing.T) {
	h := newHost(t)
	h.open(t)
	h.start(t, scriptPod("pod", "exit 0"))
	h.awaitExit(t, "pod")
	stuck := errors.New("operation not permitted")
	h.removeWith(func(string) error { return stuck })
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Errorf("remove: %v", err)
	}
	for range 2 {
		if _, err := h.Pod(t.Context(), "pod"); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("got %v, want that the pod is not found", err)
		}
		if err := h.RemovePod(t.Context(), "pod"); err != nil {
			t.Errorf("remove again: %v", err)
		}
	}
	problems := h.Problems()
	if len(problems) != 1 || !errors.Is(problems[0].Err, stuck) || !strings.HasPrefix(problems[0].Path, filepath.Join(h.dir, "removing")+"/") {
		t.Errorf("problems: %+v, want what is left of the pod", problems)
	}
	// A pod with the same UID, as a static pod has that comes back.
	h.start(t, scriptPod("pod", "exit 3"))
	if c := h.awaitExit(t, "pod"); c.ExitCode != 3 {
		t.Errorf("got %+v, want exit code 3", c)
	}
	h.removeWith(removeAll)
	if left := h.cleanOnce(t.Context()); left || len(h.Problems()) != 0 {
		t.Errorf("problems: %+v, want none", h.Problems())
	}
}

// The cleaner and a caller delete the same directory at the same time. One of them fails at what the
// other has done already, and nothing is left to report.
func TestWhatAnotherHasDeletedIsNoProblem(t *testing.T) {
	h := newHost(t)
	h.open(t)
	h.start(t, scriptPod("pod", "exit 0"))
	h.awaitExit(t, "pod")
	h.removeWith(func(dir string) error {
		return errors.Join(removeAll(dir), errors.New("a mount below it cannot be unmounted"))
	})
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Error(err)
	}
	if left := h.cleanOnce(t.Context()); left || len(h.Problems()) > 0 {
		t.Errorf("problems: %+v, want none", h.Problems())
	}
}

func TestAStrangeStateDirectoryKeepsNoPodFromBeingTakenOver(t *testing.T) {
	h := newHost(t)
	h.open(t)
	h.start(t, scriptPod("good", "exit 3"))
	h.awaitExit(t, "good")
	damaged := h.start(t, scriptPod("damaged", "exit 0"))
	h.awaitExit(t, "damaged")
	h.close()
	pods := filepath.Join(h.dir, "pods")
	container := podDir(filepath.Join(pods, "damaged")).container(damaged)
	newer := podDir(filepath.Join(pods, "newer"))
	err := errors.Join(
		os.WriteFile(filepath.Join(pods, "README"), []byte("hello"), 0o600),
		os.WriteFile(filepath.Join(h.dir, "removing", "file"), []byte("hello"), 0o600),
		os.WriteFile(filepath.Join(pods, "good", "containers", "file"), []byte("hello"), 0o600),
		os.WriteFile(container.Spec(), []byte("null"), 0o600),
		os.WriteFile(container.Shim(), nil, 0o600),
		os.Mkdir(filepath.Join(pods, "empty"), 0o700),
		os.Mkdir(string(newer), 0o700),
		os.WriteFile(newer.record(), newerRecord(), 0o600),
		os.MkdirAll(filepath.Join(pods, "odd", "pod.json"), 0o700),
		os.Symlink("/", filepath.Join(pods, "link")),
		syscall.Mkfifo(filepath.Join(pods, "pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	h.open(t)
	h.cleanOnce(t.Context())
	if c := h.only(t, "good"); c.ExitCode != 3 {
		t.Errorf("got %+v, want exit code 3", c)
	}
	if pod, err := h.Pod(t.Context(), "damaged"); err != nil || len(pod.Containers) != 0 {
		t.Errorf("got %+v, %v; want the pod without its container", pod, err)
	}
	var got []string
	for _, problem := range h.Problems() {
		name, _ := filepath.Rel(h.dir, problem.Path)
		got = append(got, name)
	}
	if want := []string{"pods/README", "pods/link", "pods/newer", "pods/odd", "pods/pipe"}; !slices.Equal(got, want) {
		t.Errorf("problems: got %q, want %q", got, want)
	}
	// What a newer statusd wrote is kept for it.
	if err := h.StartPod(t.Context(), scriptPod("newer", "exit 0")); err == nil {
		t.Error("a pod was started over the records of a newer statusd")
	}
	if _, err := os.Stat(newer.record()); err != nil {
		t.Error(err)
	}
}

// newerRecord is the record of a pod in a format to come; its checksum is right.
func newerRecord() []byte {
	return []byte(`{"format":"statusd.pod/v2","crc32c":"5d93e199"}`)
}

// As those that the Go command makes of modules.
func TestReadOnlyDirectoriesAreRemovedByAnOrdinaryUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pod")
	inner := filepath.Join(dir, "volumes", "data", "mod")
	err := errors.Join(os.MkdirAll(inner, 0o777), os.WriteFile(filepath.Join(inner, "go.mod"), nil, 0o444),
		os.Mkdir(filepath.Join(dir, "closed"), 0o777), os.Symlink("/etc", filepath.Join(dir, "link")))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], removeArgument, dir)
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		err = filepath.WalkDir(filepath.Dir(dir), func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, nobody, nobody))
		})
		for parent := filepath.Dir(filepath.Dir(dir)); parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
			err = errors.Join(err, os.Chmod(parent, 0o755))
		}
		cmd.Path = "/proc/self/exe" // which needs no way to the file
	}
	err = errors.Join(err, os.Chmod(inner, 0o555), os.Chmod(filepath.Join(dir, "closed"), 0), os.Chmod(filepath.Dir(inner), 0o555))
	if err != nil {
		t.Fatal(err)
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("remove: %v, %s", err, output)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that nothing is left", err)
	}
	if _, err := os.Stat("/etc"); err != nil {
		t.Error(err)
	}
}

// A directory that cannot be moved aside is deleted where it is.
func TestAPodIsRemovedWhereItIsIfItCannotBeMoved(t *testing.T) {
	h := newHost(t)
	h.open(t)
	h.start(t, scriptPod("pod", "exit 0"))
	h.awaitExit(t, "pod")
	h.close()
	if err := errors.Join(os.Remove(filepath.Join(h.dir, "removing")), os.WriteFile(filepath.Join(h.dir, "removing"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h.open(t)
	stuck := errors.New("operation not permitted")
	h.removeWith(func(string) error { return stuck })
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Error(err)
	}
	if err := h.StartPod(t.Context(), scriptPod("pod", "exit 0")); err == nil {
		t.Error("a pod was started in a directory that is being deleted")
	}
	h.close()
	h.open(t) // which finds it without a record
	h.cleanOnce(t.Context())
	if entries, err := os.ReadDir(filepath.Join(h.dir, "pods")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if problems := h.Problems(); len(problems) != 1 || problems[0].Path != filepath.Join(h.dir, "removing") {
		t.Errorf("problems: %+v, want the file that is no directory", problems)
	}
}

// A record that New did not see is not written over.
func TestAPodIsNotStartedOverARecord(t *testing.T) {
	h := newHost(t)
	h.open(t)
	dir := podDir(filepath.Join(h.dir, "pods", "pod"))
	if err := errors.Join(os.MkdirAll(string(dir), 0o700), os.WriteFile(dir.record(), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := h.StartPod(t.Context(), scriptPod("pod", "exit 0")); err == nil {
		t.Error("got no error")
	}
}

// The cleaner and a caller may come at the same time.
func TestWhatIsGoneNeedsNoRemoval(t *testing.T) {
	if err := removeAll(filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Error(err)
	}
}

// What is mounted inside a volume is not the pod's.
func TestWhatIsMountedInAVolumeIsNotDeleted(t *testing.T) {
	if !mayMount(t) {
		return
	}
	precious := t.TempDir()
	if err := os.WriteFile(filepath.Join(precious, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", `mkdir "$STATUSD_VOLUME_DATA/a b"`)
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	h.start(t, pod)
	h.awaitExit(t, "pod")
	if err := unix.Mount(precious, filepath.Join(h.dir, "pods/pod/volumes/data/a b"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(precious, "file")); err != nil {
		t.Errorf("a file of the host was deleted through a mount: %v", err)
	}
	if got := files(t, h.dir); len(got) != 4 {
		t.Errorf("left: %q", got)
	}
}
