package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/diskspace"
	"github.com/statusd/statusd/internal/text"
)

// The limits of images, as the kubelet has them by default.
const (
	// imagesFull is the usage of the file system of images, in percent, from which unused images are removed until it is imagesGoal.
	imagesFull = 85
	imagesGoal = 80
	// imageAge is the minimum time that an image is kept after a pull or use: its container may not exist yet.
	imageAge = 2 * time.Minute
	// imagesEvery is how often images are looked at.
	imagesEvery = time.Minute
	// shownImages and shownNames bound what the Node lists.
	shownImages = 50
	shownNames  = 5
)

// imageStore tracks the images of the container runtime.
type imageStore struct {
	mu    sync.Mutex // guards what follows
	since map[string]time.Time
	used  map[string]time.Time // by ID: when a container last used it
	shown []v1.ContainerImage
}

// unused is an image that no container uses.
type unused struct {
	*runtimeapi.Image
	since, used time.Time
}

// use notes that a container is about to be made of an image.
func (s *imageStore) use(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used = map[string]time.Time{}
	}
	s.used[id] = now
}

// take updates the store from a list, and returns the images that may be removed, least recently used first.
func (s *imageStore) take(images []*runtimeapi.Image, containers []*runtimeapi.Container, sandboxImage string, now time.Time) []unused {
	s.mu.Lock()
	defer s.mu.Unlock()
	inUse := map[string]bool{}
	for _, c := range containers {
		inUse[c.ImageRef], inUse[c.ImageId], inUse[c.GetImage().GetImage()] = true, true, true
	}
	since, used := map[string]time.Time{}, map[string]time.Time{}
	var removable []unused
	for _, image := range images {
		since[image.Id] = now
		if first, known := s.since[image.Id]; known {
			since[image.Id] = first
		}
		if last, known := s.used[image.Id]; known {
			used[image.Id] = last
		}
		names := slices.Concat([]string{image.Id}, image.RepoTags, image.RepoDigests)
		if slices.ContainsFunc(names, func(name string) bool { return inUse[name] }) {
			used[image.Id] = now
			continue
		}
		young := now.Sub(since[image.Id]) < imageAge || now.Sub(used[image.Id]) < imageAge
		if !young && !image.Pinned && !slices.Contains(names, sandboxImage) {
			removable = append(removable, unused{image, since[image.Id], used[image.Id]})
		}
	}
	s.since, s.used, s.shown = since, used, shown(images)
	slices.SortFunc(removable, func(a, b unused) int {
		return cmp.Or(a.used.Compare(b.used), a.since.Compare(b.since), cmp.Compare(a.Id, b.Id))
	})
	return removable
}

// shown is what the Node lists: the largest images, each by some of its names.
func shown(images []*runtimeapi.Image) (all []v1.ContainerImage) {
	for _, image := range images {
		names := slices.DeleteFunc(slices.Concat(image.RepoDigests, image.RepoTags), func(name string) bool { return strings.Contains(name, "<none>") })
		if len(names) > 0 {
			all = append(all, v1.ContainerImage{Names: names[:min(shownNames, len(names))], SizeBytes: int64(image.Size)})
		}
	}
	slices.SortFunc(all, func(a, b v1.ContainerImage) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), slices.Compare(a.Names, b.Names))
	})
	return all[:min(shownImages, len(all))]
}

// Images implements [runtime.ImageStore].
func (r *Runtime) Images() []v1.ContainerImage {
	r.images.mu.Lock()
	defer r.images.mu.Unlock()
	return r.images.shown
}

// RemoveUnusedImages implements [runtime.ImageStore].
func (r *Runtime) RemoveUnusedImages(ctx context.Context) error {
	removable, err := r.unusedImages(ctx)
	if err != nil {
		return err
	}
	_, err = r.removeImages(ctx, removable, 1<<63-1)
	return err
}

// keepImages looks at the images until ctx ends, and removes some when their file system is full.
func (r *Runtime) keepImages(ctx context.Context) {
	ticker := time.NewTicker(imagesEvery)
	defer ticker.Stop()
	failing := false
	for {
		err := r.lookAtImages(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.options.Logger.Warn("images cannot be kept within bounds, will retry", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Runtime) lookAtImages(ctx context.Context) error {
	removable, err := r.unusedImages(ctx)
	if err != nil {
		return err
	}
	path, err := r.imageDir(ctx)
	if err != nil {
		return err
	}
	used, size, err := r.options.diskUsage(path)
	if err != nil {
		return err
	}
	if used*100 < size*imagesFull {
		r.report(path, nil)
		return nil
	}
	excess := int64(used - size*imagesGoal/100)
	freed, err := r.removeImages(ctx, removable, excess)
	if err == nil && freed < excess {
		err = fmt.Errorf("the file system of images is %d%% full, and no image is left that no container uses: %s of images were removed, %s should be",
			used*100/size, text.Bytes(uint64(freed)), text.Bytes(uint64(excess)))
	}
	r.report(path, err)
	return err
}

// unusedImages lists images and containers of all agents.
func (r *Runtime) unusedImages(ctx context.Context) ([]unused, error) {
	ctx, cancel := r.ask(ctx)
	defer cancel()
	began := time.Now()
	images, err := r.cri.images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	containers, err := r.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	if err := r.records.keep(images.Images, began); err != nil {
		return nil, fmt.Errorf("forget who pulled images that are gone: %w", err)
	}
	return r.images.take(images.Images, containers.Containers, r.cri.sandboxImage, time.Now()), nil
}

// imageDir is a path on the file system of the images.
func (r *Runtime) imageDir(ctx context.Context) (string, error) {
	ctx, cancel := r.ask(ctx)
	defer cancel()
	info, err := r.cri.images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		return "", fmt.Errorf("file system of images: %w", err)
	}
	if len(info.ImageFilesystems) == 0 {
		return "", errors.New("the container runtime names no file system of images")
	}
	return info.ImageFilesystems[0].GetFsId().GetMountpoint(), nil
}

// removeImages removes images until so many bytes are free, and continues after an image that cannot be
// removed.
func (r *Runtime) removeImages(ctx context.Context, removable []unused, excess int64) (freed int64, err error) {
	for _, image := range removable {
		if freed >= excess || ctx.Err() != nil {
			break
		}
		bounded, cancel := r.ask(ctx)
		_, failed := r.cri.images.RemoveImage(bounded, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: image.Id}})
		cancel()
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("remove image %s: %w", image.Id, failed))
			continue
		}
		freed += int64(image.Size)
		r.options.Logger.Info("unused image removed", "image", image.Id, "names", image.RepoTags, "bytes", image.Size)
	}
	return freed, err
}

// diskUsage is what of a file system is used, and what there is for users other than root.
func diskUsage(path string) (used, size uint64, err error) {
	space, err := diskspace.Of(path)
	return space.Total - space.Available, space.Total, err
}
