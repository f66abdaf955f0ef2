// Package image makes container images of a few files, without a container engine: an archive of an
// OCI image layout with one layer, which containerd imports.
//
// The same files make the same archive, byte by byte: no time of day and no name of a user is in it.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Image has the contents of an image archive.
type Image struct {
	// Name is the image's name with its tag, as in docker.io/library/web:1.
	Name string
	// Files are the regular files, by their path without the first slash.
	Files map[string]File
	// Links are the symbolic links: their paths and targets.
	Links map[string]string
	// Directories are more directories than those of the files and links, which come by themselves.
	Directories []string
	// Entrypoint, Cmd, Env, User and Labels are the image's defaults for containers.
	Entrypoint, Cmd, Env []string
	User                 string
	Labels               map[string]string
	// Architecture is GOARCH of the programs; that of this program if empty.
	Architecture string
}

// File is a regular file.
type File struct {
	Content []byte
	Mode    int64 // 0644 if zero
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	Config       containerConfig `json:"config"`
	RootFS       rootFS          `json:"rootfs"`
}

type containerConfig struct {
	User       string            `json:"User,omitempty"`
	Env        []string          `json:"Env,omitempty"`
	Entrypoint []string          `json:"Entrypoint,omitempty"`
	Cmd        []string          `json:"Cmd,omitempty"`
	Labels     map[string]string `json:"Labels,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar"

	// The name of an image is not part of it. These are where importers look for it.
	annotationName = "io.containerd.image.name"
	annotationRef  = "org.opencontainers.image.ref.name"
)

// Write writes the archive.
func Write(w io.Writer, i Image) error {
	layer, err := i.layer()
	if err != nil {
		return err
	}
	if i.Architecture == "" {
		i.Architecture = runtime.GOARCH
	}
	blobs := map[string][]byte{}
	put := func(mediaType string, content []byte) descriptor {
		sum := sha256.Sum256(content)
		digest := hex.EncodeToString(sum[:])
		blobs["blobs/sha256/"+digest] = content
		return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
	}
	layerBlob := put(mediaLayer, layer)
	configBlob := put(mediaConfig, encode(config{
		Architecture: i.Architecture, OS: "linux",
		Config: containerConfig{User: i.User, Env: i.Env, Entrypoint: i.Entrypoint, Cmd: i.Cmd, Labels: i.Labels},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{layerBlob.Digest}},
	}))
	manifestBlob := put(mediaManifest, encode(manifest{
		SchemaVersion: 2, MediaType: mediaManifest, Config: configBlob, Layers: []descriptor{layerBlob},
	}))
	manifestBlob.Annotations = map[string]string{annotationName: i.Name, annotationRef: tag(i.Name)}
	blobs["index.json"] = encode(index{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{manifestBlob}})
	blobs["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)

	archive := tar.NewWriter(w)
	for _, name := range sorted(blobs) {
		if err := addFile(archive, name, File{Content: blobs[name]}); err != nil {
			return fmt.Errorf("image %s: %w", i.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	return nil
}

// layer is the archive of the files, with the directories that they are in.
func (i Image) layer() ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, dir := range i.directories() {
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: mode}); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(i.Files) {
		if err := addFile(archive, name, i.Files[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(i.Links) {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: i.Links[name], Mode: 0o777}); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return buffer.Bytes(), err
}

// directories returns tmp, the directories of the image and the parents of files and links, each parent before
// its children.
func (i Image) directories() []string {
	found := map[string]bool{"tmp": true}
	for _, name := range i.Directories {
		for dir := name; dir != "."; dir = path.Dir(dir) {
			found[dir] = true
		}
	}
	for _, name := range slices.Concat(sorted(i.Files), sorted(i.Links)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			found[dir] = true
		}
	}
	return sorted(found)
}

func addFile(archive *tar.Writer, name string, f File) error {
	if f.Mode == 0 {
		f.Mode = 0o644
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.Mode, Size: int64(len(f.Content))}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(f.Content)
	return err
}

// encode is of types that always encode.
func encode(v any) []byte {
	content, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return content
}

func tag(name string) string {
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return "latest"
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
