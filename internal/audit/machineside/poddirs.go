package machineside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
)

// podDirs reads the kubelet's directories of pods. It neither follows a symbolic link in them nor opens a
// directory on which something is mounted: a file system whose server is gone would block the look forever.
func podDirs(h *host, o Options, now time.Time) (map[types.UID]audit.PodDir, error) {
	root, err := hostproc.Resolve(h.root, filepath.Join(o.KubeletRoot, "pods"))
	if err != nil {
		return nil, err
	}
	mounts, err := mountsBelow(h, o, root)
	if err != nil {
		return nil, err
	}
	entries, err := h.list(root)
	if err != nil {
		return nil, fmt.Errorf("directories of pods: %w", err)
	}
	dirs := map[types.UID]audit.PodDir{}
	for _, entry := range entries {
		if !entry.IsDir() || !uid.MatchString(entry.Name()) {
			continue
		}
		info, err := entry.Info()
		if vanished(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		dir := audit.PodDir{Path: filepath.Join(root, entry.Name()), Changed: info.ModTime(), At: now}
		dir.Mounts = mounts[entry.Name()]
		if dir.Volumes, err = volumes(h, dir); err != nil {
			return nil, err
		}
		dirs[types.UID(entry.Name())] = dir
	}
	return dirs, nil
}

// volumes returns the directories of a pod's volumes that are not empty, and on which nothing is mounted.
func volumes(h *host, dir audit.PodDir) ([]string, error) {
	root := filepath.Join(dir.Path, "volumes")
	if slices.Contains(dir.Mounts, root) {
		return nil, nil
	}
	plugins, err := h.list(root)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, plugin := range plugins {
		path := filepath.Join(root, plugin.Name())
		if !plugin.IsDir() || mounted(dir.Mounts, path) {
			continue
		}
		names, err := h.list(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			volume := filepath.Join(path, name.Name())
			if !name.IsDir() || mounted(dir.Mounts, volume) {
				continue
			}
			full, err := notEmpty(h.path(volume))
			if err != nil {
				return nil, err
			}
			if full {
				found = append(found, volume)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// mounted reports whether something is mounted on a directory. The mounts are in order.
func mounted(mounts []string, dir string) bool {
	_, found := slices.BinarySearch(mounts, dir)
	return found
}

// notEmpty reports whether a directory has an entry.
func notEmpty(path string) (bool, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if vanished(err) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer file.Close()
	_, err = file.Readdirnames(1)
	if errors.Is(err, io.EOF) || vanished(err) {
		return false, nil
	}
	return err == nil, err
}

// mountsBelow returns the mounts below the directory of pods, by the name of the pod's directory,
// in order.
func mountsBelow(h *host, o Options, root string) (map[string][]string, error) {
	data, prefix, err := mountTable(h, o)
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	below := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		point, ok := mountPoint(line)
		if !ok {
			continue
		}
		if point, ok = strings.CutPrefix(point, prefix); !ok {
			continue
		}
		rest, ok := strings.CutPrefix(point, root+"/")
		if !ok {
			continue
		}
		if h.left--; h.left < 0 {
			return nil, fmt.Errorf("mounts: %w", errTooMany)
		}
		name, _, _ := strings.Cut(rest, "/")
		below[name] = append(below[name], point)
	}
	for name, mounts := range below {
		slices.Sort(mounts)
		below[name] = slices.Compact(mounts)
	}
	return below, nil
}

// maxMounts bounds the size of the table of mounts.
const maxMounts = 64 << 20

// mountTable returns the mounts of the host, and what their paths begin with. In a container they are those of the
// host's first process or, if these cannot be read without further rights, what the container itself has below the host's root.
func mountTable(h *host, o Options) (data []byte, prefix string, err error) {
	if o.HostRoot == "/" {
		data, err = h.read(filepath.Join(o.HostProc, "self", "mountinfo"), maxMounts)
		return data, "", err
	}
	data, err = h.read(filepath.Join(o.HostProc, "1", "mountinfo"), maxMounts)
	if errors.Is(err, fs.ErrPermission) {
		data, err = h.read("/proc/self/mountinfo", maxMounts)
		return data, strings.TrimSuffix(o.HostRoot, "/"), err
	}
	return data, "", err
}

// mountPoint returns the path of a line of mountinfo.
func mountPoint(line string) (string, bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return "", false
	}
	return strings.TrimSuffix(unescape(fields[4]), "//deleted"), true
}

// unescape replaces the octal numbers by which the kernel writes white space and backslashes.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) && octal(text[i+1:i+4]) {
			b.WriteByte((text[i+1]-'0')<<6 | (text[i+2]-'0')<<3 | (text[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func octal(digits string) bool {
	return digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' && digits[1] <= '7' && digits[2] >= '0' && digits[2] <= '7'
}
