//go:build real

package cri

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/image"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/test/campaign"
	waiting "github.com/statusd/statusd/test/patience"
	"github.com/statusd/statusd/test/stock"
	"github.com/statusd/statusd/test/testlog"
)

// registry serves one image. Requests of its layer wait until it is released. Asked gets each of them, and canceled those that end before.
type registry struct {
	host            string
	blobs           map[string][]byte // by digest
	manifest        string            // its digest
	asked, canceled chan struct{}     // with room for all

	mu       sync.Mutex // guards released
	released chan struct{}
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	var archive bytes.Buffer
	if err := image.Write(&archive, image.Image{Name: "pulled:1", Files: map[string]image.File{"data": {Content: make([]byte, 1<<20)}}, Cmd: []string{"/data"}}); err != nil {
		t.Fatal(err)
	}
	r := &registry{blobs: map[string][]byte{}, asked: make(chan struct{}, 100), canceled: make(chan struct{}, 100), released: make(chan struct{})}
	for reader := tar.NewReader(&archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		content, readErr := io.ReadAll(reader)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		digest := "sha256:" + path.Base(header.Name)
		r.blobs[digest] = content
		if bytes.Contains(content, []byte(`"layers":`)) {
			r.manifest = digest
		}
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Cleanup(r.release)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func (r *registry) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.released:
	default:
		close(r.released)
	}
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	digest := path.Base(request.URL.Path)
	if strings.Contains(request.URL.Path, "/manifests/") {
		digest = r.manifest
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digest)
	} else if len(r.blobs[digest]) > 1<<20 {
		r.asked <- struct{}{}
		select {
		case <-r.released:
		case <-request.Context().Done():
			r.canceled <- struct{}{}
			return
		}
	}
	if content, known := r.blobs[digest]; known {
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(content))
		return
	}
	if request.URL.Path != "/v2/" {
		http.NotFound(w, request)
	}
}

// pullingPod is one whose second container has an image of the registry.
func pullingPod(r *registry) *v1.Pod {
	pod := testPod("pulls")
	pod.Spec.HostNetwork = true
	pod.Spec.Containers = []v1.Container{
		{Name: "runs", Image: toolbox, ImagePullPolicy: v1.PullNever, Command: []string{"/bin/sh", "-c", "sleep 1000000"}},
		{Name: "pulled", Image: r.host + "/pulled:1", ImagePullPolicy: v1.PullIfNotPresent},
	}
	return pod
}

// A real containerd pulls from a registry while other containers of the pod start; the image is in the Node's list, and goes when it is no longer used.
func TestRealPull(t *testing.T) {
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	rt, end := open(t, containerd, t.TempDir(), testlog.New(t))
	defer end()
	patient, cancel := waiting.Context(t)
	defer cancel()
	r := newRegistry(t)
	pod := pullingPod(r)
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	start := func(i int) (string, error) { return rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[i], 0) }
	if _, err := start(1); !errors.Is(err, runtime.ErrPulling) {
		t.Fatalf("got %v, want ErrPulling", err)
	}
	running, err := start(0)
	if err != nil {
		t.Fatalf("during the pull: %v", err)
	}
	r.release()
	err = campaign.Await(patient, 20*time.Millisecond, func() error {
		_, err := start(1)
		if errors.Is(err, runtime.ErrPulling) {
			return err
		}
		if failed, ok := errors.AsType[*runtime.StartError](err); !ok || failed.Reason != runtime.WaitingRunError {
			t.Errorf("got %v, want that the file without a program does not start", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	has := func() bool {
		if err := rt.lookAtImages(t.Context()); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(rt.Images(), func(i v1.ContainerImage) bool { return slices.Contains(i.Names, r.host+"/pulled:1") })
	}
	if !has() {
		t.Errorf("the image is not in %v", rt.Images())
	}
	rt.age(time.Hour)
	if err := rt.RemoveUnusedImages(t.Context()); err != nil || !has() {
		t.Errorf("the image of a container that has ended is removed with its container: %v", err)
	}
	if err := rt.StopContainer(t.Context(), running, 0); err != nil {
		t.Fatal(err)
	}
	if err := campaign.Await(patient, 20*time.Millisecond, func() error { return rt.RemovePod(t.Context(), pod.UID) }); err != nil {
		t.Fatal(err)
	}
	rt.age(time.Hour)
	if err := rt.RemoveUnusedImages(t.Context()); err != nil || has() {
		t.Errorf("an image that no container uses is still there: %v, %v", rt.Images(), err)
	}
}

// The request to the registry ends with the pod.
func TestRealPull_EndsWithItsPod(t *testing.T) {
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	rt, end := open(t, containerd, t.TempDir(), testlog.New(t))
	defer end()
	r := newRegistry(t)
	pod := pullingPod(r)
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[1], 0); !errors.Is(err, runtime.ErrPulling) {
		t.Fatalf("got %v, want ErrPulling", err)
	}
	patient, cancel := waiting.Context(t)
	defer cancel()
	select {
	case <-r.asked:
	case <-patient.Done():
		t.Fatal("the layer is not asked for")
	}
	if err := rt.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.canceled:
	case <-patient.Done():
		t.Error("the pull goes on")
	}
}

// What a container writes outside of volumes is seen, and counts for its pod.
func TestRealPodUsage_CountsWhatContainersWrite(t *testing.T) {
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	rt, end := open(t, containerd, t.TempDir(), testlog.New(t))
	defer end()
	patient, cancel := waiting.Context(t)
	defer cancel()
	pod := testPod("writes")
	pod.Spec.HostNetwork = true
	pod.Spec.Containers = []v1.Container{shellIn(toolbox, "dd if=/dev/zero of=/large bs=1M count=20; sleep 1000000")}
	if err := rt.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	id, err := rt.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	err = campaign.Await(patient, 100*time.Millisecond, func() error { // containerd counts each 10 s
		usage, err := rt.PodUsage(t.Context(), pod.UID)
		if err == nil && (usage.DiskBytes < 20<<20 || usage.Containers["main"].DiskBytes < 20<<20) {
			err = errors.New("what the container has written does not count")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := rt.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if err := campaign.Await(patient, 20*time.Millisecond, func() error { return rt.RemovePod(t.Context(), pod.UID) }); err != nil {
		t.Fatal(err)
	}
}

func shellIn(image, script string) v1.Container {
	return v1.Container{Name: "main", Image: image, ImagePullPolicy: v1.PullNever, Command: []string{"/bin/sh", "-c", script}}
}
