package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/statusd/statusd/internal/image"
)

var example = image.Image{
	Name:        "example.test/web:1",
	Files:       map[string]image.File{"usr/bin/web": {Content: []byte("program"), Mode: 0o755}, "etc/web.conf": {Content: []byte("a=b")}},
	Links:       map[string]string{"bin/web": "../usr/bin/web"},
	Directories: []string{"srv/uploads"},
	Entrypoint:  []string{"/usr/bin/web"},
	User:        "65532",
}

func archive(t *testing.T, i image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := image.Write(&b, i); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpack is the content of each entry, and the entries' names in their order.
func unpack(t *testing.T, content []byte) (map[string][]byte, []string) {
	t.Helper()
	files, names := map[string][]byte{}, []string{}
	for reader := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, names
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = content
		names = append(names, header.Name)
	}
}

// Each blob is named by its digest, and the index leads to the files.
func TestBlobsAreNamedByTheirDigest(t *testing.T) {
	files, _ := unpack(t, archive(t, example))
	for name, content := range files {
		if digest, ok := strings.CutPrefix(name, "blobs/sha256/"); ok {
			if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
				t.Errorf("blob %s has another content", name)
			}
		}
	}
	blob := func(digest string) []byte {
		content, ok := files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]
		if !ok {
			t.Fatalf("there is no blob %s", digest)
		}
		return content
	}
	var index struct {
		Manifests []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if got := index.Manifests[0].Annotations["io.containerd.image.name"]; got != example.Name {
		t.Errorf("the image is called %q, want %q", got, example.Name)
	}
	var manifest struct{ Layers []struct{ Digest string } }
	if err := json.Unmarshal(blob(index.Manifests[0].Digest), &manifest); err != nil {
		t.Fatal(err)
	}
	_, names := unpack(t, blob(manifest.Layers[0].Digest))
	want := []string{"bin/", "etc/", "srv/", "srv/uploads/", "tmp/", "usr/", "usr/bin/", "etc/web.conf", "usr/bin/web", "bin/web"}
	if !slices.Equal(names, want) {
		t.Errorf("the layer has %v, want %v", names, want)
	}
}

func TestSameFilesMakeTheSameArchive(t *testing.T) {
	if !bytes.Equal(archive(t, example), archive(t, example)) {
		t.Error("two archives of one image differ")
	}
}
