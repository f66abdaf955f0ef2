package images

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/image"
)

// machine has every program, as a shell, and each other file of the suite with its name as content.
func machine(t *testing.T) Sources {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"nnp", "localhost.crt", "localhost.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Sources{
		Agnhost: "/bin/sh", Certificates: dir, NNP: filepath.Join(dir, "nnp"),
		Find: func(string) (string, error) { return "/bin/sh", nil }, Applets: []string{"busybox", "cat", "hostname", "nc", "sh"},
	}
}

func all(t *testing.T) map[string]image.Image {
	t.Helper()
	made, err := All(machine(t))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]image.Image{}
	for _, i := range made {
		byName[i.Name] = i
		if err := image.Write(&bytes.Buffer{}, i); err != nil {
			t.Error(err)
		}
	}
	return byName
}

func TestImages_HaveWhatSpecsUse(t *testing.T) {
	made := all(t)
	agnhost := made["registry.k8s.io/e2e-test-images/agnhost:2.63.0"]
	for name, want := range map[string]string{"localhost.crt": "localhost.crt", "localhost.key": "localhost.key"} {
		if got := string(agnhost.Files[name].Content); got != want {
			t.Errorf("agnhost's file %s is %q, want %q", name, got, want)
		}
	}
	for _, file := range []string{"agnhost", "usr/bin/curl", "bin/nc", "bin/bash", "bin/busybox"} {
		if agnhost.Files[file].Mode != 0o755 {
			t.Errorf("agnhost has no program %s", file)
		}
		if _, ok := agnhost.Links[file]; ok {
			t.Errorf("agnhost has %s as a link, too", file)
		}
	}
	if agnhost.Links["bin/sh"] != "bash" {
		t.Errorf("agnhost's shell is %q", agnhost.Links["bin/sh"])
	}
	if users := string(agnhost.Files["etc/passwd"].Content); !strings.Contains(users, "user-defined-in-image:x:1000:") || !strings.Contains(users, "root:x:0:") {
		t.Errorf("users of agnhost: %q", users)
	}
	busybox := made["registry.k8s.io/e2e-test-images/busybox:1.37.0-1"]
	if busybox.Links["bin/sh"] != "busybox" || busybox.Links["usr/bin/sh"] != "../../bin/bash" || busybox.Links["bin/nc"] != "busybox" || busybox.Links["bin/cat"] != "busybox" || len(busybox.Entrypoint) > 0 {
		t.Errorf("busybox has links %v and entrypoint %v", busybox.Links, busybox.Entrypoint)
	}
	if _, ok := busybox.Files["agnhost"]; ok {
		t.Error("busybox has got files of another image")
	}
	if users := string(busybox.Files["etc/passwd"].Content); strings.Contains(users, "user-defined-in-image") {
		t.Errorf("busybox has got users of another image: %q", users)
	}
	glibc := made["registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0"]
	if _, ok := glibc.Links["bin/hostname"]; ok || glibc.Files["bin/hostname"].Mode != 0o755 {
		t.Error("glibc-dns-testing has busybox's hostname")
	}
	if mode := made["registry.k8s.io/e2e-test-images/nonewprivs:1.4"].Files["usr/local/bin/nnp"].Mode; mode != 0o6755 {
		t.Errorf("nnp has mode %o, want one that runs it as its owner", mode)
	}
	if user := made["registry.k8s.io/e2e-test-images/nonroot:1.5"].User; user != "1234" {
		t.Errorf("nonroot runs as %q", user)
	}
}

// A client of the registry follows a tag to a manifest, and from there to blobs, by their digests.
func TestRegistry_LeadsFromTagToLayers(t *testing.T) {
	files := all(t)["registry.k8s.io/e2e-test-images/agnhost:2.63.0"].Files
	blob := func(kind, digest string) []byte {
		sum := strings.TrimPrefix(digest, "sha256:")
		content := files["var/registry/pause/"+kind+"/sha256/"+sum[:2]+"/"+sum+"/data"].Content
		if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
			t.Fatalf("%s %s has %d bytes of another digest", kind, digest, len(content))
		}
		return content
	}
	type descriptor struct{ Digest string }
	var manifest struct {
		MediaType string
		Config    descriptor
		Layers    []descriptor
	}
	if err := json.Unmarshal(blob("manifests", string(files["var/registry/pause/manifests/testing"].Content)), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType == "" || len(manifest.Layers) == 0 {
		t.Errorf("the manifest is %+v", manifest)
	}
	blob("blobs", manifest.Config.Digest)
	for _, layer := range manifest.Layers {
		blob("blobs", layer.Digest)
	}
}

// A program in an image finds its loader and its libraries, and these find theirs.
func TestProgram_BringsItsLibraries(t *testing.T) {
	i := image.Image{Files: map[string]image.File{}}
	if err := addProgram(&i, machine(t), "sh", "bin/sh"); err != nil {
		t.Fatal(err)
	}
	has := func(library string) bool {
		for name := range i.Files {
			if filepath.Base(name) == library {
				return true
			}
		}
		return false
	}
	for name, file := range i.Files {
		program, err := elf.NewFile(bytes.NewReader(file.Content))
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := program.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, library := range libraries {
			if !has(library) {
				t.Errorf("%s needs %s, which the image does not have", name, library)
			}
		}
	}
}
