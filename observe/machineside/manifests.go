package machineside

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/statusd/statusd/observe"
)

// maxManifest is what a kubelet reads of a manifest.
const maxManifest = 10 << 20

// manifests reads the names of the static pods, and reports whether all are known. A directory that does not
// exist is no answer: the kubelet's staticPodPath may be another. Nor is a file that cannot be read, since
// the pod in it may be one that runs.
func manifests(h *host, o Options) ([]observe.Manifest, bool) {
	root, err := h.resolve(o.Manifests)
	if err != nil {
		return nil, false
	}
	info, err := os.Stat(h.path(root))
	if err != nil {
		return nil, false
	}
	if !info.IsDir() {
		return manifest(h, o, root)
	}
	entries, err := h.list(root)
	if err != nil {
		return nil, false
	}
	var all []observe.Manifest
	known := true
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue // as the kubelet does
		}
		some, ok := manifest(h, o, filepath.Join(root, entry.Name()))
		all, known = append(all, some...), known && ok
	}
	return all, known
}

// manifest reads the names in one file. It is as lenient as a kubelet, for which an unknown field is no error.
func manifest(h *host, o Options, path string) ([]observe.Manifest, bool) {
	resolved, err := h.resolve(path)
	if err != nil {
		return nil, false
	}
	info, err := os.Stat(h.path(resolved))
	if vanished(err) {
		return nil, true
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, err == nil && info.IsDir() // a link to a directory; a pipe would block
	}
	data, err := h.read(h.path(resolved), maxManifest)
	if vanished(err) {
		return nil, true
	} else if err != nil {
		return nil, false
	}
	return decode(path, data, o.Node)
}

// decode reads the names of the pods in a manifest.
func decode(path string, data []byte, node string) ([]observe.Manifest, bool) {
	var all []observe.Manifest
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, len(all) > 0
		} else if err != nil {
			return all, false
		}
		var pod *struct { // nil if there are comments only
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := sigsyaml.Unmarshal(document, &pod); err != nil {
			return all, false
		}
		if pod == nil {
			continue
		}
		if pod.Kind != "Pod" || pod.Metadata.Name == "" {
			return all, false
		}
		if pod.Metadata.Namespace == "" {
			pod.Metadata.Namespace = "default"
		}
		all = append(all, observe.Manifest{Path: path, Namespace: pod.Metadata.Namespace, Name: pod.Metadata.Name + "-" + strings.ToLower(node)})
	}
}
