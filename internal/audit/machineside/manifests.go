package machineside

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
)

// maxManifest is what a kubelet reads of a manifest.
const maxManifest = 10 << 20

// manifests reads the names of the static pods; an error says why the list is incomplete. A directory that
// does not exist is an error: the kubelet's staticPodPath may be different. So is an unreadable file, since
// its pod may be running.
func manifests(h *host, o Options) ([]audit.Manifest, error) {
	root, err := hostproc.Resolve(h.root, o.Manifests)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(h.path(root))
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return manifest(h, o, root)
	}
	entries, err := h.list(root)
	if err != nil {
		return nil, err
	}
	var all []audit.Manifest
	var unknown error
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue // as the kubelet does
		}
		some, err := manifest(h, o, filepath.Join(root, entry.Name()))
		all, unknown = append(all, some...), errors.Join(unknown, err)
	}
	return all, unknown
}

// manifest reads the names in one file. It is as lenient as a kubelet, for which an unknown field is no error.
func manifest(h *host, o Options, path string) ([]audit.Manifest, error) {
	resolved, err := hostproc.Resolve(h.root, path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(h.path(resolved))
	switch {
	case vanished(err), err == nil && info.IsDir(): // a link to a directory is as a directory
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // a pipe would block
		return nil, fmt.Errorf("%s is not a file", path)
	}
	data, err := h.read(h.path(resolved), maxManifest)
	if vanished(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	found, err := decode(path, data, o.Node)
	if err != nil {
		return found, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// errNoPod: a manifest has something else than pods, or nothing.
var errNoPod = errors.New("not a pod with a name")

// decode reads the names of the pods in a manifest.
func decode(path string, data []byte, node string) ([]audit.Manifest, error) {
	var all []audit.Manifest
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		} else if errors.Is(err, io.EOF) {
			return nil, errNoPod
		} else if err != nil {
			return all, err
		}
		var pod *struct { // nil if there are comments only
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := sigsyaml.Unmarshal(document, &pod); err != nil {
			return all, err
		}
		if pod == nil {
			continue
		}
		if pod.Kind != "Pod" || pod.Metadata.Name == "" {
			return all, errNoPod
		}
		if pod.Metadata.Namespace == "" {
			pod.Metadata.Namespace = "default"
		}
		all = append(all, audit.Manifest{Path: path, Namespace: pod.Metadata.Namespace, Name: pod.Metadata.Name + "-" + strings.ToLower(node)})
	}
}
