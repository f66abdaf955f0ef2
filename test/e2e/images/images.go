package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/statusd/statusd/internal/image"
)

// registry is where the specs of release 1.36 expect most of their images.
const registry = "registry.k8s.io/e2e-test-images/"

// Sources are what images are made of.
type Sources struct {
	// Agnhost is the file of the program of that name, and Certificates the directory with the certificate of its servers.
	Agnhost, Certificates string
	// NNP is the file of a program that prints its effective user, for the image nonewprivs.
	NNP string
	// Find returns the file of a program of this machine; nil: search PATH, as a shell does.
	Find func(name string) (string, error)
	// Applets are the names of busybox's applets; nil: the applets that it lists.
	Applets []string
}

func (s *Sources) complete() error {
	if s.Find == nil {
		s.Find = exec.LookPath
	}
	if s.Applets == nil {
		applets, err := exec.Command("busybox", "--list").Output()
		if err != nil {
			return fmt.Errorf("applets of busybox: %w", err)
		}
		s.Applets = strings.Fields(string(applets))
	}
	return nil
}

// All returns the images.
func All(s Sources) ([]image.Image, error) {
	if err := s.complete(); err != nil {
		return nil, err
	}
	busybox, err := busyboxImage(s)
	if err != nil {
		return nil, err
	}
	pause := clone(busybox, "registry.k8s.io/pause:3.10.2")
	pause.Entrypoint, pause.Cmd = []string{"/bin/sh", "-c", "trap exit TERM INT; while :; do sleep 1000 & wait $!; done"}, nil
	agnhost, err := agnhostImage(s, busybox, pause)
	if err != nil {
		return nil, err
	}
	nonewprivs, err := nonewprivsImage(s, busybox)
	if err != nil {
		return nil, err
	}
	// Its hostname resolves names as glibc does.
	glibc := clone(busybox, registry+"glibc-dns-testing:2.0.0")
	delete(glibc.Links, "bin/hostname")
	if err := addProgram(&glibc, s, "hostname", "bin/hostname"); err != nil {
		return nil, err
	}
	nonroot := clone(busybox, registry+"nonroot:1.5")
	nonroot.User = "1234"
	return []image.Image{
		pause, agnhost, nonewprivs, nonroot, glibc,
		clone(agnhost, registry+"agnhost:2.55"),
		clone(busybox, registry+"busybox:1.37.0-1"),
		clone(busybox, registry+"busybox:1.36.1-1"),
		clone(busybox, registry+"ipc-utils:1.4"),
		nginxImage(agnhost, registry+"nginx:1.15-4"),
		nginxImage(agnhost, registry+"nginx:1.27-0"),
	}, nil
}

// clone returns the image under another name. Its maps are its own.
func clone(i image.Image, name string) image.Image {
	i.Name, i.Files, i.Links = name, maps.Clone(i.Files), maps.Clone(i.Links)
	return i
}

// busyboxImage has all applets of a static busybox. Debian's busybox has a shell that does not pass on variables whose names
// no shell can write, and some specs expect them; others expect the messages of that very shell. So /bin/sh is busybox, and
// the sh that is found by its name alone is a static bash.
func busyboxImage(s Sources) (image.Image, error) {
	i := image.Image{
		Files:       map[string]image.File{},
		Links:       map[string]string{},
		Directories: []string{"root", "home", "var/tmp", "usr/bin", "usr/sbin", "dev", "proc", "sys"},
		Cmd:         []string{"sh"},
		Env:         []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	for program, file := range map[string]string{"busybox": "bin/busybox", "bash-static": "bin/bash"} {
		if err := addProgram(&i, s, program, file); err != nil {
			return i, err
		}
	}
	for _, applet := range s.Applets {
		if applet != "busybox" && applet != "bash" {
			i.Links["bin/"+applet] = "busybox"
		}
	}
	i.Links["usr/bin/sh"] = "../../bin/bash"
	i.Files["etc/passwd"] = image.File{Content: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n")}
	i.Files["etc/group"] = image.File{Content: []byte("root:x:0:\nnobody:x:65534:\n")}
	i.Files["etc/nsswitch.conf"] = image.File{Content: []byte("hosts: files dns\n")}
	return i, nil
}

// agnhostImage has what the specs run in a container of agnhost, a registry with the image pause among it.
func agnhostImage(s Sources, busybox, pause image.Image) (image.Image, error) {
	i := clone(busybox, registry+"agnhost:2.63.0")
	i.Entrypoint, i.Cmd = []string{"/agnhost"}, []string{"pause"}
	i.Directories = append([]string{"uploads"}, i.Directories...)
	if err := addFile(&i, s.Agnhost, "agnhost"); err != nil {
		return i, err
	}
	for from, to := range map[string]string{
		filepath.Join(s.Certificates, "localhost.crt"): "localhost.crt",
		filepath.Join(s.Certificates, "localhost.key"): "localhost.key",
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			return i, err
		}
		i.Files[to] = image.File{Content: content}
	}
	i.Links["agnhost-2"] = "agnhost"
	i.Links["bin/sh"] = "bash" // busybox's shell prefers its own nc, which knows no UDP
	delete(i.Links, "bin/nc")
	for _, program := range []struct{ name, file string }{{"curl", "usr/bin/curl"}, {"nc.openbsd", "bin/nc"}} {
		if err := addProgram(&i, s, program.name, program.file); err != nil {
			return i, err
		}
	}
	i.Files["etc/passwd"] = image.File{Content: append(bytes.Clone(i.Files["etc/passwd"].Content), "user-defined-in-image:x:1000:1000::/home:/bin/sh\n"...)}
	i.Files["etc/group"] = image.File{Content: append(bytes.Clone(i.Files["etc/group"].Content),
		"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"...)}
	served, err := registryFiles("var/registry", "pause", "testing", pause)
	maps.Copy(i.Files, served)
	return i, err
}

// nonewprivsImage prints the effective user of a program that belongs to root and runs as its owner.
func nonewprivsImage(s Sources, busybox image.Image) (image.Image, error) {
	i := clone(busybox, registry+"nonewprivs:1.4")
	content, err := os.ReadFile(s.NNP)
	i.Files["usr/local/bin/nnp"] = image.File{Content: content, Mode: 0o6755}
	i.Cmd = []string{"nnp"}
	return i, err
}

// nginxImage answers on port 80; the specs use nothing else of it.
func nginxImage(agnhost image.Image, name string) image.Image {
	i := clone(agnhost, name)
	i.Entrypoint, i.Cmd = []string{"/agnhost"}, []string{"netexec", "--http-port=80", "--udp-port=-1"}
	return i
}

// registryFiles are those of an image in the directory that agnhost's registry serves: blobs and manifests by their digest,
// and the digest of the manifest by the tag.
func registryFiles(dir, name, tag string, i image.Image) (map[string]image.File, error) {
	var archive bytes.Buffer
	if err := image.Write(&archive, i); err != nil {
		return nil, err
	}
	files := map[string]image.File{}
	put := func(kind, digest string, content []byte) {
		files[path.Join(dir, name, kind, "sha256", digest[:2], digest, "data")] = image.File{Content: content}
	}
	var index struct{ Manifests []struct{ Digest string } }
	blobs := map[string][]byte{}
	for reader := tar.NewReader(&archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		if digest, ok := strings.CutPrefix(header.Name, "blobs/sha256/"); ok {
			blobs[digest] = content
		} else if header.Name == "index.json" {
			if err := json.Unmarshal(content, &index); err != nil {
				return nil, err
			}
		}
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("image %s has %d manifests, want one", i.Name, len(index.Manifests))
	}
	manifest := strings.TrimPrefix(index.Manifests[0].Digest, "sha256:")
	for digest, content := range blobs {
		if digest == manifest {
			put("manifests", digest, content)
		} else {
			put("blobs", digest, content)
		}
	}
	files[path.Join(dir, name, "manifests", tag)] = image.File{Content: []byte("sha256:" + manifest)}
	return files, nil
}
