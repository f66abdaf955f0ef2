package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// files lists what is in the state directory, with permissions.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil // a directory that is closed to us is listed, without what is in it
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		all = append(all, fmt.Sprintf("%s %o", name, info.Mode().Perm()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnEndedPodLeavesRecordsAndARemovedOneNothing(t *testing.T) {
	h := newHost(t)
	h.open(t)
	pod := scriptPod("pod", "echo hello; echo x > $STATUSD_VOLUME_DATA/file; mkdir -m 0 $STATUSD_VOLUME_DATA/closed")
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	id := h.start(t, pod)
	h.awaitExit(t, "pod")
	c := "pods/pod/containers/" + strings.TrimPrefix(id, Scheme)
	closed := "pods/pod 700"
	if h.root {
		closed = "pods/pod 710" // for its group
	}
	want := []string{
		". 711", "lock 600", "pods 711", closed, "pods/pod/containers 711", c + " 711",
		c + "/exit.json 600", c + "/logs 700", c + "/logs/log 600", c + "/shim.json 600", c + "/shim.log 600",
		c + "/spec.json 600", c + "/started.json 600", c + "/termination-log 600",
		"pods/pod/pod.json 600", "pods/pod/volumes 711", "pods/pod/volumes/data 777", "pods/pod/volumes/data/closed 0",
		"pods/pod/volumes/data/file 644", "removing 700",
	}
	if got := files(t, h.dir); !slices.Equal(got, want) {
		t.Errorf("after the end: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Fatal(err)
	}
	if got, want := files(t, h.dir), []string{". 711", "lock 600", "pods 711", "removing 700"}; !slices.Equal(got, want) {
		t.Errorf("after the removal: got %q, want %q", got, want)
	}
}

func TestTheDirectoryHasOneOwner(t *testing.T) {
	h := newHost(t)
	h.open(t)
	_, err := New(Options{Dir: h.dir})
	if err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second runtime: got %v, want an error that says that the directory is in use", err)
	}
	h.close()
	h.open(t)
}

func TestNoDirectoryIsAnError(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("got no error for an empty Options.Dir")
	}
}

// What a crash can leave behind at each step is gone after the next start.
func TestLeftoversAreRemoved(t *testing.T) {
	h := newHost(t)
	h.open(t)
	h.start(t, scriptPod("pod", "exit 0"))
	ended := h.awaitExit(t, "pod")
	before := files(t, h.dir)
	h.close()

	pods := filepath.Join(h.dir, "pods")
	neverStarted := podDir(filepath.Join(pods, "pod")).container("process://0001")
	for _, dir := range []string{
		filepath.Join(h.dir, "removing", "1", "dir", "volumes"),
		filepath.Join(pods, "no-record", "volumes", "data"),
		string(neverStarted.Dir),
		filepath.Join(pods, "pod", "containers", "0002"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	endedDir := podDir(filepath.Join(pods, "pod")).container(ended.ID)
	err := errors.Join(
		record.Write(neverStarted.Spec(), record.Spec{ID: "process://0001", Name: "main"}),
		os.WriteFile(filepath.Join(pods, "pod", ".tmp-123"), []byte("{"), 0o600),
		os.WriteFile(filepath.Join(string(endedDir.Dir), ".tmp-123"), []byte("{"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	h.open(t)
	if h.cleanOnce(t.Context()) {
		t.Errorf("something cannot be removed: %+v", h.Problems())
	}
	if got := files(t, h.dir); !slices.Equal(got, before) {
		t.Errorf("got\n%s\nwant it as before\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
	}
	if c := h.only(t, "pod"); c.ID != ended.ID || c.State != runtime.Exited {
		t.Errorf("got %+v, want %+v", c, ended)
	}
}

// What cannot be read cannot be managed: it is ended, said so, and others live on.
func TestDamagedRecordsEndThePodAndNoOther(t *testing.T) {
	for _, damaged := range []string{"pod.json", "spec.json"} {
		t.Run(damaged, func(t *testing.T) {
			h := newHost(t)
			h.open(t)
			script := fmt.Sprintf(`echo $$ > %s; while :; do sleep 0.05; done`, h.pipe)
			id := h.start(t, scriptPod("bad", script))
			main := h.hearPID(t)
			h.start(t, scriptPod("good", script))
			h.hear(t)
			h.close()
			dir := podDir(filepath.Join(h.dir, "pods", "bad"))
			path := dir.record()
			if damaged == "spec.json" {
				path = dir.container(id).Spec()
			}
			if err := os.WriteFile(path, []byte(`{"half": `), 0o600); err != nil {
				t.Fatal(err)
			}
			h.open(t)
			expectEnded(t, "the container with the damaged record", main)
			if pod, err := h.Pod(t.Context(), "bad"); damaged == "pod.json" && !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("got %+v, %v; want the pod to be gone", pod, err)
			} else if damaged == "spec.json" && (err != nil || len(pod.Containers) > 0) {
				t.Errorf("got %+v, %v; want the pod without the container", pod, err)
			}
			if c := h.only(t, "good"); c.State != runtime.Running {
				t.Errorf("the other pod: got %+v, want it running", c)
			}
		})
	}
}

func TestAPodUIDCannotNameAnotherDirectory(t *testing.T) {
	h := newHost(t)
	h.open(t)
	for _, uid := range []types.UID{"", ".", "..", "../../etc", "a/b"} {
		if err := h.StartPod(t.Context(), scriptPod(uid, "exit 0")); err == nil {
			t.Errorf("UID %q: got no error", uid)
		}
	}
}

func TestLogsAreRotated(t *testing.T) {
	h := newHost(t)
	h.options = Options{LogMaxBytes: 1000, LogMaxFiles: 3}
	h.open(t)
	id := h.start(t, scriptPod("pod", `i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done`))
	h.awaitExit(t, "pod")
	logs := podDir(filepath.Join(h.dir, "pods", "pod")).container(id).Logs()
	entries, err := os.ReadDir(logs)
	if err != nil || len(entries) != 3 {
		t.Errorf("got %v, %v; want 3 files", entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Size() > 1000 {
			t.Errorf("%s: got %d bytes, %v; want at most 1000", entry.Name(), info.Size(), err)
		}
	}
}

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind v1.HostPathType
		path string
		want string
	}{
		{v1.HostPathUnset, "made/unset", ""},
		{v1.HostPathDirectory, "", ""},
		{v1.HostPathDirectory, "file", "is not a directory"},
		{v1.HostPathDirectory, "missing", "no such file"},
		{v1.HostPathDirectoryOrCreate, "made/deep", ""},
		{v1.HostPathFile, "file", ""},
		{v1.HostPathFile, "", "is not a file"},
		{v1.HostPathFile, "pipe", "is not a file"},
		{v1.HostPathFileOrCreate, "made/file", ""},
		{v1.HostPathSocket, "file", "is not a socket"},
		{v1.HostPathCharDev, "/dev/null", ""},
		{v1.HostPathCharDev, "file", "is not a character device"},
		{v1.HostPathBlockDev, "/dev/null", "is not a block device"},
	} {
		path := c.path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		err := podvolume.CheckHostPath(&v1.HostPathVolumeSource{Path: path, Type: &c.kind})
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s as %q: got %v, want %q", c.path, c.kind, err, c.want)
		}
	}
}
