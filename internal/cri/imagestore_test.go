package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/runtime"
)

func (f *fake) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	response := &runtimeapi.ListImagesResponse{}
	for _, image := range f.images {
		response.Images = append(response.Images, image)
	}
	return response, nil
}

func (f *fake) RemoveImage(_ context.Context, r *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	for name, image := range f.images {
		if image.Id == r.Image.Image {
			delete(f.images, name)
		}
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

func (f *fake) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/images"}}}}, nil
}

// age makes what the node knows of its images older.
func (r *Runtime) age(by time.Duration) {
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	for _, times := range []map[string]time.Time{r.images.since, r.images.used} {
		for id := range times {
			times[id] = times[id].Add(-by)
		}
	}
}

// imageIDs are the images that the fake has.
func (n *node) imageIDs() (ids []string) {
	n.fake.change(func() {
		for _, image := range n.fake.images {
			ids = append(ids, image.Id)
		}
	})
	slices.Sort(ids)
	return ids
}

// full sets how full the file system of images is: in percent, of 1,000 bytes.
func (n *node) full(percent uint64) {
	n.options.diskUsage = func(path string) (used, size uint64, err error) {
		if path != "/images" {
			return 0, 0, fmt.Errorf("asked for %s", path)
		}
		return percent * 10, 1000, nil
	}
}

func (n *node) lookImages() error {
	n.t.Helper()
	return n.lookAtImages(n.t.Context())
}

// A full file system is freed of what no container uses, the image that was not used for longest first, and only as far as needed.
func TestImages_FullDisk_RemovesWhatNoContainerUses(t *testing.T) {
	n := newNode(t)
	n.fake.change(func() {
		for _, image := range []*runtimeapi.Image{
			{Id: "sha256:old", Size: 30}, {Id: "sha256:older", Size: 30}, {Id: "sha256:pinned", Size: 500, Pinned: true},
			{Id: "sha256:pause", Size: 1, RepoTags: []string{"registry/pause:3"}},
		} {
			n.fake.images[image.Id] = image
		}
	})
	n.cri.sandboxImage = "registry/pause:3"
	n.start(testPod("uid-1")) // of sha256:web
	n.full(84)
	if err := n.lookImages(); err != nil {
		t.Fatal(err)
	}
	n.images.use("sha256:older", time.Now().Add(-time.Minute))
	n.images.use("sha256:old", time.Now())
	n.age(time.Hour)

	if err := n.lookImages(); err != nil || len(n.imageIDs()) != 5 {
		t.Errorf("84%% full: got images %v, %v; want all five", n.imageIDs(), err)
	}
	n.full(85) // 50 bytes above the goal
	if err := n.lookImages(); err != nil {
		t.Fatal(err)
	}
	if got, want := n.imageIDs(), []string{"sha256:pause", "sha256:pinned", "sha256:web"}; !slices.Equal(got, want) {
		t.Errorf("85%% full: got images %v, want %v", got, want)
	}
	n.full(95)
	if err := n.lookImages(); err == nil || !strings.Contains(err.Error(), "95% full") || len(n.Problems()) != 1 {
		t.Errorf("nothing to remove: got %v and problems %v, want both to say so", err, n.Problems())
	}
	n.full(10)
	if err := n.lookImages(); err != nil || len(n.Problems()) > 0 {
		t.Errorf("10%% full: got %v and problems %v, want none", err, n.Problems())
	}
}

// One of two unused images is enough: the one that was used later stays.
func TestImages_FullDisk_KeepsWhatWasUsedLast(t *testing.T) {
	n := newNode(t)
	n.fake.change(func() {
		n.fake.images["sha256:old"], n.fake.images["sha256:new"] = &runtimeapi.Image{Id: "sha256:old", Size: 60}, &runtimeapi.Image{Id: "sha256:new", Size: 60}
	})
	n.full(10)
	if err := n.lookImages(); err != nil {
		t.Fatal(err)
	}
	n.images.use("sha256:new", time.Now())
	n.images.use("sha256:web", time.Now())
	n.age(time.Hour)
	n.full(85)
	if err := n.lookImages(); err != nil {
		t.Fatal(err)
	}
	if got, want := n.imageIDs(), []string{"sha256:new", "sha256:web"}; !slices.Equal(got, want) {
		t.Errorf("got images %v, want %v", got, want)
	}
}

// What was pulled or used a moment ago stays even under disk pressure: its container may not be made yet.
func TestImages_JustPulledOrUsed_Stays(t *testing.T) {
	n := newNode(t)
	if err := n.RemoveUnusedImages(t.Context()); err != nil || len(n.imageIDs()) != 1 {
		t.Errorf("just seen: got images %v, %v; want it kept", n.imageIDs(), err)
	}
	n.age(time.Hour)
	n.images.use("sha256:web", time.Now())
	if err := n.RemoveUnusedImages(t.Context()); err != nil || len(n.imageIDs()) != 1 {
		t.Errorf("just used: got images %v, %v; want it kept", n.imageIDs(), err)
	}
	n.age(time.Hour)
	if err := n.RemoveUnusedImages(t.Context()); err != nil || len(n.imageIDs()) != 0 {
		t.Errorf("not used for an hour: got images %v, %v; want none", n.imageIDs(), err)
	}
}

// The Node lists the largest images by five of their names.
func TestImages_OfTheNode(t *testing.T) {
	var images []*runtimeapi.Image
	for i := range 60 {
		images = append(images, &runtimeapi.Image{Id: fmt.Sprint(i), Size: uint64(i), RepoTags: []string{fmt.Sprintf("r/image:%d", i)}})
	}
	images[59].RepoTags = []string{"a:1", "a:2", "a:3", "a:4", "a:5", "a:6"}
	images[58].RepoTags, images[58].RepoDigests = nil, []string{"<none>@<none>"}
	got := shown(images)
	if len(got) != 50 || got[0].SizeBytes != 59 || len(got[0].Names) != 5 || got[1].SizeBytes != 57 {
		t.Errorf("got %d images, first %+v, then %+v", len(got), got[0], got[1])
	}
	n := newNode(t)
	n.fake.change(func() { n.fake.images["web:1"].RepoTags, n.fake.images["web:1"].Size = []string{"web:1"}, 7 })
	n.full(10)
	if err := n.lookImages(); err != nil {
		t.Fatal(err)
	}
	if got := n.Images(); len(got) != 1 || got[0].Names[0] != "web:1" || got[0].SizeBytes != 7 {
		t.Errorf("got %+v", got)
	}
}

// hold has pulls wait until release is called. Ended counts those that were canceled.
func (n *node) hold() (begun chan struct{}, release func(), ended chan struct{}) {
	begun, ended = make(chan struct{}, 10), make(chan struct{}, 10)
	released := make(chan struct{})
	n.fake.change(func() {
		n.fake.pulling = func(ctx context.Context) error {
			begun <- struct{}{}
			select {
			case <-released:
				return nil
			case <-ctx.Done():
				ended <- struct{}{}
				return ctx.Err()
			}
		}
	})
	return begun, func() { close(released) }, ended
}

// warnings collects the warnings of a node.
func (n *node) warnings() *[]string {
	var all []string
	n.options.Event = func(_ *v1.Pod, _, kind, reason, message string) {
		if kind == v1.EventTypeWarning {
			all = append(all, reason+": "+message)
		}
	}
	return &all
}

// A pull does not block the other work of its pod, and is made once.
func TestStartContainer_Pulls_ReturnsAtOnce(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	spec := &pod.Spec.Containers[0]
	spec.Image, spec.ImagePullPolicy = "new:1", v1.PullAlways
	if err := n.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	begun, release, _ := n.hold()
	changes := n.Watch(t.Context())
	for range 3 {
		if _, err := n.StartContainer(t.Context(), pod, spec, 0); !errors.Is(err, runtime.ErrPulling) {
			t.Fatalf("got %v, want ErrPulling", err)
		}
	}
	<-begun
	release()
	if uid := <-changes; uid != pod.UID {
		t.Errorf("got a change of %s", uid)
	}
	if _, err := n.StartContainer(t.Context(), pod, spec, 0); err != nil {
		t.Errorf("after the pull: %v", err)
	}
	if len(begun) > 0 {
		t.Error("the image is pulled more than once for one start")
	}
}

// The image of a container may be edited while the former one is pulled.
func TestStartContainer_ImageEditedDuringThePull_PullsTheNewOne(t *testing.T) {
	n := newNode(t)
	pod := testPod("uid-1")
	spec := &pod.Spec.Containers[0]
	spec.Image = "typo:1"
	if err := n.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	begun, _, ended := n.hold()
	if _, err := n.StartContainer(t.Context(), pod, spec, 0); !errors.Is(err, runtime.ErrPulling) {
		t.Fatalf("got %v, want ErrPulling", err)
	}
	<-begun
	spec.Image = "web:1"
	if _, err := n.StartContainer(t.Context(), pod, spec, 0); err != nil {
		t.Errorf("got %v, want a start of the image that is there", err)
	}
	<-ended
}

// A pull ends with its pod, leaves no container behind, and is no failure of the image.
func TestStartContainer_EndsDuringThePull(t *testing.T) {
	for name, end := range map[string]func(n *node, pod *v1.Pod) error{
		"ended":   func(n *node, pod *v1.Pod) error { return n.RemoveVolumes(n.t.Context(), pod.UID) },
		"removed": func(n *node, pod *v1.Pod) error { return n.RemovePod(n.t.Context(), pod.UID) },
		"node":    func(n *node, _ *v1.Pod) error { return n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			pod := testPod("uid-1")
			pod.Spec.Containers[0].ImagePullPolicy = v1.PullAlways
			if err := n.StartPod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			warnings := n.warnings()
			begun, _, ended := n.hold()
			if _, err := n.StartContainer(t.Context(), pod, &pod.Spec.Containers[0], 0); !errors.Is(err, runtime.ErrPulling) {
				t.Errorf("got %v, want ErrPulling", err)
			}
			<-begun
			if err := end(n, pod); err != nil {
				t.Fatal(err)
			}
			<-ended
			if len(*warnings) > 0 {
				t.Errorf("got warnings %q of a pod that is deleted, want none", *warnings)
			}
			n.fake.change(func() {
				if len(n.fake.containers) > 0 {
					t.Errorf("got containers %v, want none", n.fake.containers)
				}
			})
		})
	}
}
