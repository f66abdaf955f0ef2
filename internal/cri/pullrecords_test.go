package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/node/volume"
	"github.com/statusd/statusd/runtime"
)

const private = "registry.example:5000/shop/app:1"

// passwords are pull secrets by namespace and name.
type passwords struct {
	volume.Objects
	of map[string]string
}

func (p passwords) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	password, known := p.of[namespace+"/"+name]
	if !known {
		return nil, volume.ErrNotFound
	}
	config, err := json.Marshal(map[string]any{"auths": map[string]any{"registry.example:5000": entry{Username: "shop", Password: password}}})
	return &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid of " + namespace + "/" + name)},
		Type:       v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: config},
	}, err
}

// privateNode is one whose registry wants a password, which the secret a/right has.
func privateNode(t *testing.T) (*node, map[string]string) {
	n := newNode(t)
	n.fake.change(func() { n.fake.password = "right" })
	of := map[string]string{"a/right": "right"}
	n.options.Objects = passwords{of: of}
	return n, of
}

func pulls(uid types.UID, namespace, secret string, policy v1.PullPolicy) *v1.Pod {
	pod := testPod(uid)
	pod.Namespace = namespace
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = private, policy
	if secret != "" {
		pod.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: secret}}
	}
	return pod
}

// begin starts a pod and its container, waits for a pull, and returns the reason why the container waits, and whether there was a pull.
func (n *node) begin(pod *v1.Pod) (reason string, pulled bool) {
	n.t.Helper()
	if err := n.StartPod(n.t.Context(), pod); err != nil {
		n.t.Fatal(err)
	}
	return n.startMain(pod, 0)
}

func (n *node) startMain(pod *v1.Pod, attempt int) (reason string, pulled bool) {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	defer cancel()
	changes := n.Watch(ctx)
	_, err := n.StartContainer(n.t.Context(), pod, &pod.Spec.Containers[0], attempt)
	if pulled = errors.Is(err, runtime.ErrPulling); pulled {
		<-changes
		_, err = n.StartContainer(n.t.Context(), pod, &pod.Spec.Containers[0], attempt)
	}
	if failed, ok := errors.AsType[*runtime.StartError](err); ok {
		return failed.Reason, pulled
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return "", pulled
}

func (n *node) want(pod *v1.Pod, reason string, pulled bool) {
	n.t.Helper()
	if got, was := n.begin(pod); got != reason || was != pulled {
		n.t.Errorf("pod %s: got reason %q, a pull: %v; want %q, %v", pod.UID, got, was, reason, pulled)
	}
}

// restart is a restart of statusd, with the same pull secrets.
func (n *node) restart() {
	objects := n.options.Objects
	n.open()
	n.options.Objects = objects
}

// An image that one pod's secret has pulled is for pods with these credentials alone, also after a restart.
func TestPulledImage_NeedsCredentials(t *testing.T) {
	n, of := privateNode(t)
	n.want(pulls("first", "a", "right", v1.PullIfNotPresent), "", true)
	for _, when := range []string{"at once", "after a restart"} {
		n.want(pulls(types.UID("same secret "+when), "a", "right", v1.PullNever), "", false)
		n.want(pulls(types.UID("no secret "+when), "a", "", v1.PullIfNotPresent), runtime.WaitingImagePull, true)
		n.want(pulls(types.UID("never "+when), "b", "", v1.PullNever), runtime.WaitingImageNeverPull, false)
		of["b/wrong"] = "wrong"
		n.want(pulls(types.UID("wrong secret "+when), "b", "wrong", v1.PullIfNotPresent), runtime.WaitingImagePull, true)
		of["c/copy"] = "right"
		n.want(pulls(types.UID("copy of the secret "+when), "c", "copy", v1.PullNever), "", false)
		of["a/right"] = "changed"
		n.want(pulls(types.UID("secret with a new password "+when), "a", "right", v1.PullNever), "", false)
		of["a/right"] = "right"
		n.restart()
	}
	n.fake.change(func() { n.fake.password = "" })
	n.want(pulls("the registry is open now", "b", "", v1.PullIfNotPresent), "", true)
	n.want(pulls("a pull without credentials", "b", "", v1.PullNever), "", false)
}

// A container starts again while its pull secret cannot be read.
func TestPulledImage_UsedByThePodBefore_NeedsNoCredentials(t *testing.T) {
	n, of := privateNode(t)
	pod := pulls("first", "a", "right", v1.PullIfNotPresent)
	n.want(pod, "", true)
	delete(of, "a/right")
	n.restart()
	n.fake.change(func() { n.fake.exit(bareID(n.only(pod.UID).ID), 1) })
	n.list()
	if reason, pulled := n.startMain(pod, 1); reason != "" || pulled {
		t.Errorf("got reason %q, a pull: %v; want a start of the image that is there", reason, pulled)
	}
}

// Another pod does not get an image in the moment between the end of its pull and the note of who has pulled it, nor under another name.
func TestPulledImage_DuringThePull_NeedsCredentials(t *testing.T) {
	n, _ := privateNode(t)
	begun, release, _ := n.hold()
	first := pulls("first", "a", "right", v1.PullIfNotPresent)
	if err := n.StartPod(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	changes := n.Watch(t.Context())
	if _, err := n.StartContainer(t.Context(), first, &first.Spec.Containers[0], 0); !errors.Is(err, runtime.ErrPulling) {
		t.Fatalf("got %v, want ErrPulling", err)
	}
	<-begun
	image := &runtimeapi.Image{Id: "sha256:pulled", RepoTags: []string{private}}
	n.fake.change(func() { n.fake.images[private], n.fake.images["alias:1"] = image, image })
	n.want(pulls("by its name", "b", "", v1.PullNever), runtime.WaitingImageNeverPull, false)
	alias := pulls("by another name", "b", "", v1.PullNever)
	alias.Spec.Containers[0].Image = "alias:1"
	n.want(alias, runtime.WaitingImageNeverPull, false)
	release()
	for <-changes != first.UID {
	}
}

// A kill during a pull: what was pulled counts as pulled with unknown credentials. Nothing counts as pulled if the image is not there.
func TestPulledImage_KilledDuringThePull(t *testing.T) {
	for _, there := range []bool{true, false} {
		t.Run(fmt.Sprintf("there %v", there), func(t *testing.T) {
			n, _ := privateNode(t)
			if err := n.records.begin(private); err != nil {
				t.Fatal(err)
			}
			image := &runtimeapi.Image{Id: "sha256:pulled", RepoTags: []string{private}}
			if there {
				n.fake.change(func() { n.fake.images[private] = image })
			}
			n.restart()
			n.fake.change(func() { n.fake.images[private] = image })
			reason := ""
			if there {
				reason = runtime.WaitingImageNeverPull
			}
			n.want(pulls("another", "b", "", v1.PullNever), reason, false)
			if left, err := os.ReadDir(filepath.Join(n.dir, "images", pullingDir)); err != nil || len(left) > 0 {
				t.Errorf("got %v, %v; want no pull that is noted as interrupted", left, err)
			}
		})
	}
}

// On a full disk nothing is pulled that could not be noted. If the disk is full when the pull ends, the image is for its puller alone all the same.
func TestPulledImage_DiskFull(t *testing.T) {
	n, _ := privateNode(t)
	write := n.options.writeRecord
	var full []string
	n.records.write = func(path string, data []byte) error {
		if slices.Contains(full, filepath.Base(filepath.Dir(path))) {
			return syscall.ENOSPC
		}
		return write(path, data)
	}
	full = []string{pullingDir}
	n.want(pulls("no pull", "a", "right", v1.PullIfNotPresent), runtime.WaitingImagePull, true)
	n.fake.change(func() {
		if slices.Contains(n.fake.calls, "PullImage") {
			t.Error("the image was pulled")
		}
	})
	full = []string{pulledDir}
	n.want(pulls("first", "a", "right", v1.PullIfNotPresent), "", true)
	for _, when := range []string{"at once", "after a restart"} {
		n.want(pulls(types.UID("another "+when), "b", "", v1.PullNever), runtime.WaitingImageNeverPull, false)
		n.restart()
	}
}

// An image without a note came another way, and is for all pods. So is one that was removed and came back another way.
func TestImportedImage_NeedsNoCredentials(t *testing.T) {
	n, _ := privateNode(t)
	n.want(pulls("first", "a", "right", v1.PullIfNotPresent), "", true)
	n.fake.change(func() { delete(n.fake.images, private) })
	if err := n.records.keep(nil, time.Now().Add(-time.Hour)); err != nil { // a list from before the pull
		t.Fatal(err)
	}
	n.fake.change(func() { n.fake.images[private] = &runtimeapi.Image{Id: "sha256:pulled"} })
	n.want(pulls("pulled", "b", "", v1.PullNever), runtime.WaitingImageNeverPull, false)
	if err := n.records.keep(nil, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	n.want(pulls("imported", "b", "", v1.PullNever), "", false)
	n.restart()
	n.want(pulls("imported, after a restart", "b", "", v1.PullNever), "", false)
}

// A kubelet's notes are read, and one that cannot be read counts as a pull with unknown credentials.
func TestPulledImage_NotesOfAKubelet(t *testing.T) {
	n, _ := privateNode(t)
	kubelet := t.TempDir()
	pulled := filepath.Join(kubelet, kubeletRecords, pulledDir)
	if err := os.MkdirAll(pulled, 0o700); err != nil {
		t.Fatal(err)
	}
	for id, note := range map[string]string{
		"sha256:pulled": `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-01-01T00:00:00Z","imageRef":"sha256:pulled",` +
			`"credentialMapping":{"registry.example:5000/shop/app":{"kubernetesSecrets":[{"uid":"uid of a/right","namespace":"a","name":"right","credentialHash":"another"}]}}}`,
		"sha256:web": `{"kind":`,
	} {
		if err := os.WriteFile(filepath.Join(pulled, pullFile(id)), []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Adopt(t.Context(), nil, kubelet); err != nil {
		t.Fatal(err)
	}
	n.restart()
	n.fake.change(func() { n.fake.images[private] = &runtimeapi.Image{Id: "sha256:pulled"} })
	n.want(pulls("same secret", "a", "right", v1.PullNever), "", false)
	n.want(pulls("no secret", "b", "", v1.PullNever), runtime.WaitingImageNeverPull, false)
	unreadable := testPod("unreadable")
	unreadable.Spec.Containers[0].ImagePullPolicy = v1.PullNever
	n.want(unreadable, runtime.WaitingImageNeverPull, false)

	back := t.TempDir()
	if _, err := n.Release(t.Context(), back); err == nil {
		if _, err := os.Stat(filepath.Join(back, kubeletRecords, pulledDir, pullFile("sha256:pulled"))); err != nil {
			t.Errorf("given back: %v", err)
		}
	} else {
		t.Fatal(err)
	}
}

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"busybox": "busybox", "busybox:1": "busybox", "r:5000/a/b": "r:5000/a/b", "r:5000/a/b:2": "r:5000/a/b", "a/b:2@sha256:00": "a/b", "a/b@sha256:00": "a/b",
	} {
		if got := repository(image); got != want {
			t.Errorf("repository(%q) = %q, want %q", image, got, want)
		}
	}
	if fullName("busybox:1") != "docker.io/library/busybox:1" || fullName("a/b:1") != "docker.io/a/b:1" || fullName("r:5000/a:1") != "r:5000/a:1" {
		t.Errorf("got %q, %q, %q", fullName("busybox:1"), fullName("a/b:1"), fullName("r:5000/a:1"))
	}
}

// Of the credentials of an image only so many are remembered.
func TestPullers_AreBounded(t *testing.T) {
	var p pullers
	for i := range maxPullers + 10 {
		p = p.with(pullSecret{UID: fmt.Sprint(i), Namespace: "a", Name: "s"})
	}
	if len(p.Secrets) != maxPullers || p.Secrets[maxPullers-1].UID != fmt.Sprint(maxPullers+9) {
		t.Errorf("got %d secrets, the last one %v", len(p.Secrets), p.Secrets[len(p.Secrets)-1])
	}
}
