package machine

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed statusd.yaml
var statusdConfig string

// write makes a file of the machine's directory from a text with $NAME in it.
func (m *Machine) write(name, text string, values map[string]string) (string, error) {
	file := filepath.Join(m.dir, name)
	expanded := os.Expand(text, func(name string) string {
		if name == "DIR" {
			return m.dir
		}
		return values[name]
	})
	return file, os.WriteFile(file, []byte(expanded), 0o644)
}

// top is the directory of the repository: recordings are made in test/upstream/lives.
func top(file string) string { return filepath.Join("..", "..", "..", file) }

func kubeletBinary() string        { return top("build/kubelet-1.36.3") }
func kubeletStatusdBinary() string { return top("build/kubelet-statusd-1.36.3") }
func statusdBinary() string        { return top("bin/statusd") }

// unmountBelow removes the mounts in a directory, the innermost ones first.
func unmountBelow(dir string) error {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	lines := strings.Split(string(data), "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) > 1 && strings.HasPrefix(words[1], dir+"/") {
			if err := unix.Unmount(words[1], unix.MNT_DETACH); err != nil {
				return err
			}
		}
	}
	return nil
}
