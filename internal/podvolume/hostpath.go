package podvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"
)

// CheckHostPath checks that the path of a hostPath volume has the pod's type, and creates it if the type says so.
func CheckHostPath(source *v1.HostPathVolumeSource) error {
	if source.Type == nil || *source.Type == v1.HostPathUnset {
		if _, err := os.Stat(source.Path); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return makeHostPath(source.Path, v1.HostPathDirectoryOrCreate) // as container runtimes do
	}
	if err := makeHostPath(source.Path, *source.Type); err != nil {
		return err
	}
	info, err := os.Stat(source.Path)
	if err != nil {
		return fmt.Errorf("hostPath type check failed: %w", err)
	}
	if !hasType(info.Mode(), *source.Type) {
		return fmt.Errorf("hostPath type check failed: %s is not a %s", source.Path, typeNames[*source.Type])
	}
	return nil
}

// makeHostPath makes a missing file or directory of the volume's type.
func makeHostPath(path string, kind v1.HostPathType) error {
	switch kind {
	case v1.HostPathDirectoryOrCreate:
		return os.MkdirAll(path, 0o755)
	case v1.HostPathFileOrCreate:
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return nil
}

var typeNames = map[v1.HostPathType]string{
	v1.HostPathDirectory: "directory", v1.HostPathDirectoryOrCreate: "directory",
	v1.HostPathFile: "file", v1.HostPathFileOrCreate: "file",
	v1.HostPathSocket: "socket file", v1.HostPathCharDev: "character device", v1.HostPathBlockDev: "block device",
}

func hasType(mode fs.FileMode, kind v1.HostPathType) bool {
	switch kind {
	case v1.HostPathDirectory, v1.HostPathDirectoryOrCreate:
		return mode.IsDir()
	case v1.HostPathFile, v1.HostPathFileOrCreate:
		return mode.IsRegular()
	case v1.HostPathSocket:
		return mode&fs.ModeSocket != 0
	case v1.HostPathCharDev:
		return mode&fs.ModeCharDevice != 0
	case v1.HostPathBlockDev:
		return mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	}
	return false
}
