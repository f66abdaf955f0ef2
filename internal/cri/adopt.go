package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/podstatus"
)

// KubeletDir is where a kubelet keeps its pods by default.
const KubeletDir = "/var/lib/kubelet"

// kubeletRecords is where in its directory a kubelet remembers who pulled images.
const kubeletRecords = "image_manager"

// kubeletKinds are the directories that the kubelet has for kinds of volumes.
var kubeletKinds = map[string]string{
	"emptyDir": "kubernetes.io~empty-dir", "configMap": "kubernetes.io~configmap", "secret": "kubernetes.io~secret",
	"downwardAPI": "kubernetes.io~downward-api", "projected": "kubernetes.io~projected",
}

// Adopt takes over the running pods of a stopped kubelet: a pod that has a record belongs to this runtime. The volumes stay where the kubelet has made
// them. pods are the API's pods that are bound to this node. Adopt takes all pods or none: a pod that stayed behind would run a second time beside its
// old containers. It returns the number of adopted pods.
func (r *Runtime) Adopt(ctx context.Context, pods []*v1.Pod, kubeletDir string) (taken int, err error) {
	sandboxes, err := r.readySandboxes(ctx)
	if err != nil {
		return 0, err
	}
	var adopted []*pod
	var refused []error
	for _, manifest := range pods {
		box := sandboxes[sandboxUID(manifest)]
		if _, err := r.place(manifest.UID); err == nil || box == nil || podstatus.IsTerminal(manifest.Status.Phase) {
			continue // ours already, or nothing runs: this runtime starts it, or it has ended
		}
		p, err := r.adoptable(manifest, box, kubeletDir)
		if err != nil {
			refused = append(refused, fmt.Errorf("pod %s/%s: %w", manifest.Namespace, manifest.Name, err))
		}
		adopted = append(adopted, p)
	}
	if len(refused) > 0 {
		return 0, errors.Join(refused...)
	}
	if err := copyPullRecords(filepath.Join(kubeletDir, kubeletRecords), r.records.dir); err != nil {
		return 0, fmt.Errorf("who pulled images: %w", err)
	}
	for _, p := range adopted {
		if err := errors.Join(os.MkdirAll(p.dir.volumes(), 0o711), os.Chmod(string(p.dir), 0o711), r.save(p)); err != nil {
			return taken, err
		}
		taken++
	}
	return taken, nil
}

// sandboxUID is the UID that the kubelet gives the sandbox of a pod: a static pod has another one in the API.
func sandboxUID(pod *v1.Pod) types.UID {
	if podstatus.IsMirror(pod) {
		return types.UID(pod.Annotations[v1.MirrorPodAnnotationKey])
	}
	return pod.UID
}

// readySandboxes returns the newest ready sandbox of each pod.
func (r *Runtime) readySandboxes(ctx context.Context) (map[types.UID]*runtimeapi.PodSandbox, error) {
	ctx, cancel := r.ask(ctx)
	defer cancel()
	listed, err := r.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	ready := map[types.UID]*runtimeapi.PodSandbox{}
	for _, s := range listed.Items {
		uid := types.UID(s.GetMetadata().GetUid())
		if known := ready[uid]; s.State == runtimeapi.PodSandboxState_SANDBOX_READY && (known == nil || known.GetMetadata().GetAttempt() < s.GetMetadata().GetAttempt()) {
			ready[uid] = s
		}
	}
	return ready, nil
}

// adoptable is the pod as this runtime would have it, or why it cannot be taken over.
func (r *Runtime) adoptable(manifest *v1.Pod, box *runtimeapi.PodSandbox, kubeletDir string) (*pod, error) {
	dir := filepath.Join(kubeletDir, "pods", string(manifest.UID))
	switch {
	case podstatus.IsMirror(manifest):
		return nil, errors.New("statusd would make another pod from the manifest of this static pod: move the manifest away and wait until the pod has ended")
	case manifest.Spec.HostUsers != nil && !*manifest.Spec.HostUsers:
		return nil, errors.New("the users of its user namespace are known to the kubelet alone: drain it first")
	case box.RuntimeHandler != "" && (manifest.Spec.RuntimeClassName == nil || *manifest.Spec.RuntimeClassName == ""):
		return nil, fmt.Errorf("its sandbox has the runtime handler %s, the pod names no runtime class: drain it first", box.RuntimeHandler)
	}
	if found := r.Check(manifest); len(found) > 0 {
		return nil, fmt.Errorf("%s: %s: drain it first", found[0].Field, found[0].Reason)
	}
	if err := checkUID(manifest.UID); err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("the kubelet's directory of the pod: %w", err)
	}
	if r.groups.hierarchy != nil && !exists(r.groups.everywhere(r.groups.pathOf(manifest))) {
		return nil, fmt.Errorf("it has no control group %s: set cgroupParent as the kubelet's cgroupRoot", r.groups.parentOf(manifest))
	}
	started := instant(box.CreatedAt)
	return &pod{dir: r.podDir(manifest.UID), manifest: manifest.DeepCopy(), createdAt: started, placeSince: started, kubelet: dir}, nil
}

func exists(paths []string) bool {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// kubeletVolume is where the kubelet has the volume, empty if the pod was not taken over from one or the volume is not one of its directories.
func (p *pod) kubeletVolume(name string) string {
	if p.kubelet == "" {
		return ""
	}
	return kubeletVolume(p.kubelet, p.manifest, name)
}

func kubeletVolume(dir string, pod *v1.Pod, name string) string {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == name {
			if kind := kubeletKinds[kindOf(&v.VolumeSource)]; kind != "" {
				return filepath.Join(dir, "volumes", kind, name)
			}
		}
	}
	return ""
}

// Release hands all running pods to a kubelet that does not run yet: their volumes are moved to the kubelet's directories, and their records are deleted. It
// hands over all pods or none, and returns their number. No other method may be called afterwards.
func (r *Runtime) Release(ctx context.Context, kubeletDir string) (given int, err error) {
	r.mu.Lock()
	var pods []*pod
	for _, p := range r.pods {
		pods = append(pods, p)
	}
	r.mu.Unlock()
	var refused []error
	for _, p := range pods {
		if err := r.releasable(p, kubeletDir); err != nil {
			refused = append(refused, fmt.Errorf("pod %s/%s: %w", p.manifest.Namespace, p.manifest.Name, err))
		}
	}
	if len(refused) > 0 {
		return 0, errors.Join(refused...)
	}
	if err := copyPullRecords(r.records.dir, filepath.Join(kubeletDir, kubeletRecords)); err != nil {
		return 0, fmt.Errorf("who pulled images: %w", err)
	}
	for _, p := range pods {
		if err := ctx.Err(); err != nil {
			return given, err
		}
		if err := p.release(kubeletDir); err != nil {
			return given, fmt.Errorf("pod %s/%s: %w", p.manifest.Namespace, p.manifest.Name, err)
		}
		given++
	}
	return given, nil
}

// releasable is why a pod cannot be given away.
func (r *Runtime) releasable(p *pod, kubeletDir string) error {
	if podstatus.IsStatic(p.manifest) {
		return errors.New("a kubelet would make another pod from the manifest of this static pod: move the manifest away and wait until the pod has ended")
	}
	if p.firstUser != 0 {
		return errors.New("the users of its user namespace are known to statusd alone: drain it first")
	}
	return sameFileSystem(r.options.Dir, kubeletDir)
}

// sameFileSystem makes sure that directories can be moved from one to the other.
func sameFileSystem(from, to string) error {
	var a, b unix.Stat_t
	if err := unix.Stat(from, &a); err != nil {
		return &os.PathError{Op: "stat", Path: from, Err: err}
	}
	if err := unix.Stat(to, &b); err != nil {
		return &os.PathError{Op: "stat", Path: to, Err: err}
	}
	if a.Dev != b.Dev {
		return fmt.Errorf("%s and %s are on different file systems, volumes cannot be moved: drain it first", from, to)
	}
	return nil
}

// release moves the volumes and deletes the record. Other mounts of containers stay until the next start of statusd.
func (p *pod) release(kubeletDir string) error {
	dir := filepath.Join(kubeletDir, "pods", string(p.manifest.UID))
	for i := range p.manifest.Spec.Volumes {
		v := &p.manifest.Spec.Volumes[i]
		to := kubeletVolume(dir, p.manifest, v.Name)
		from := p.volumeDir(v.Name)
		if to == "" || to == from || p.released {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return err
		}
		if err := podvolume.Move(from, to); err != nil {
			return err
		}
	}
	return os.Remove(p.dir.record())
}
