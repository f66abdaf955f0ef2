package source

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/node/manifest"
	"github.com/statusd/statusd/podstatus"
)

// maxManifest bounds the size of a manifest that is read: a pod is a few kilobytes.
const maxManifest = 10 << 20

// A directory holds the last valid content of each of its manifests.
type directory struct {
	path  string
	node  string
	files map[string]*manifestFile // by file name
	// missing is whether the directory did not exist when it was last read.
	missing bool
}

// A manifestFile is one file: its current problems, and its running pods.
type manifestFile struct {
	content  [sha256.Size]byte
	problems []manifest.Problem
	pods     []manifest.Definition
}

// isManifest reports whether a file of this name is read. Files that editors and backups
// leave behind have other names: web.yaml~, #web.yaml#, .web.yaml.swp, web.yaml.bak; and so
// have the directories and links of a mounted ConfigMap: ..data.
func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json", ".manifest":
		return !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#") && !strings.HasPrefix(name, "~")
	}
	return false
}

// read reads the directory once and returns the static pods of this node and all problems.
// A directory that does not exist holds no pods. After an error nothing is known about the
// pods.
func (d *directory) read(now time.Time) ([]*v1.Pod, []manifest.Problem, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		clear(d.files)
		d.missing = true
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("source: read manifests: %w", err)
	}
	d.missing = false
	present := map[string]bool{}
	for _, entry := range entries {
		if name := entry.Name(); isManifest(name) && d.readFile(name, now) {
			present[name] = true
		}
	}
	maps.DeleteFunc(d.files, func(name string, _ *manifestFile) bool { return !present[name] })
	pods, problems := d.merge()
	return pods, problems, nil
}

// readFile reads a file and reports whether there is such a file.
func (d *directory) readFile(name string, now time.Time) (present bool) {
	path := filepath.Join(d.path, name)
	data, err := readManifest(path)
	if errors.Is(err, errNotAFile) {
		return false
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return false // gone since the directory was listed
		}
	}
	m := d.files[name]
	if m == nil {
		m = &manifestFile{}
		d.files[name] = m
	}
	if err != nil {
		m.content = [sha256.Size]byte{}
		m.problems = []manifest.Problem{{File: path, Reason: err.Error()}}
		return true
	}
	content := sha256.Sum256(data)
	if content != m.content {
		pods, problems := manifest.Decode(path, data, d.node)
		m.content, m.problems = content, problems
		m.accept(pods, now)
	}
	return true
}

// accept takes over the pods of the file. While part of the file is invalid, its earlier pods that
// are not redefined keep running: the invalid part may be meant to define them.
func (m *manifestFile) accept(pods []manifest.Definition, now time.Time) {
	before := m.pods
	m.pods = nil
	for _, p := range pods {
		if i := slices.IndexFunc(before, func(b manifest.Definition) bool { return b.Pod.UID == p.Pod.UID }); i >= 0 {
			p.Pod = before[i].Pod // the same content: it keeps its SeenAnnotation
		} else {
			metav1.SetMetaDataAnnotation(&p.Pod.ObjectMeta, podstatus.SeenAnnotation, now.Format(time.RFC3339Nano))
		}
		m.pods = append(m.pods, p)
	}
	if len(m.problems) == 0 {
		return
	}
	for _, b := range before {
		if !slices.ContainsFunc(m.pods, func(p manifest.Definition) bool { return key(p.Pod) == key(b.Pod) }) {
			m.pods = append(m.pods, b)
		}
	}
}

// merge returns the pods of all files. Of two definitions of one pod the first one counts, by file
// name and then by line.
func (d *directory) merge() ([]*v1.Pod, []manifest.Problem) {
	var pods []*v1.Pod
	var problems []manifest.Problem
	taken := map[string]manifest.Definition{}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		m := d.files[name]
		problems = append(problems, m.problems...)
		for _, p := range m.pods {
			if first, ok := taken[key(p.Pod)]; ok {
				problems = append(problems, manifest.Problem{File: p.File, Line: p.Line, Field: "metadata.name",
					Reason: fmt.Sprintf("pod %s is already defined by %s:%d; this definition is not used", key(p.Pod), first.File, first.Line)})
				continue
			}
			taken[key(p.Pod)] = p
			pods = append(pods, p.Pod)
		}
	}
	slices.SortFunc(problems, manifest.Problem.Compare)
	return pods, problems
}

func key(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

var errNotAFile = errors.New("not a file")

// readManifest reads a regular file, through links, and refuses a file that is too large.
func readManifest(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reasonOf(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNotAFile // opening a pipe would wait for its writer
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err != nil {
		return nil, reasonOf(err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("larger than %d MiB", maxManifest>>20)
	}
	return data, nil
}

// reasonOf is the error without operation and path, which the problem has already.
func reasonOf(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", e.Err)
	}
	return err
}
