package machineside

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/observe"
)

// read reads everything once.
func read(o Options) (observe.Machine, error) {
	facts := observe.Machine{PodDirs: map[types.UID]observe.PodDir{}, Cgroups: map[types.UID]observe.Cgroup{}}
	root := filepath.Join(o.HostRoot, o.KubeletRoot, "pods")
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return facts, err
	}
	now := time.Now()
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		facts.PodDirs[types.UID(entry.Name())] = observe.PodDir{Path: filepath.Join(o.KubeletRoot, "pods", entry.Name()), Changed: info.ModTime(), At: now}
	}
	return facts, nil
}
