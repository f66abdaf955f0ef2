package volume

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Files are the files of a volume, by path relative to it.
type Files map[string]File

// File is one file of a volume.
type File struct {
	Data []byte
	Mode fs.FileMode // permission bits
}

// paths are in order, so that errors and writes do not depend on chance.
func (f Files) paths() []string { return slices.Sorted(maps.Keys(f)) }

// check refuses paths that would leave the volume or collide with the writer's own names.
// The API server validates what a pod says, but the keys of an object come as they are.
func (f Files) check() error {
	for _, name := range f.paths() {
		if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." {
			return fmt.Errorf("invalid path: %q", name)
		}
		if strings.HasPrefix(name, "..") {
			return fmt.Errorf("invalid path: %q starts with two dots", name)
		}
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if _, both := f[parent]; both {
				return fmt.Errorf("invalid path: %q is a file and a directory", parent)
			}
		}
	}
	return nil
}

// configMapFiles are the files of a config map: all of its keys, or the items.
func configMapFiles(object *v1.ConfigMap, items []v1.KeyToPath, optional bool, mode int32) (Files, error) {
	data := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for key, value := range object.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, object.BinaryData)
	return pick(data, items, optional, mode, "config")
}

// secretFiles are the same of a secret.
func secretFiles(object *v1.Secret, items []v1.KeyToPath, optional bool, mode int32) (Files, error) {
	return pick(object.Data, items, optional, mode, "secret")
}

func pick(data map[string][]byte, items []v1.KeyToPath, optional bool, mode int32, what string) (Files, error) {
	files := Files{}
	if items == nil {
		for key, value := range data {
			files[key] = File{Data: value, Mode: permissions(mode)}
		}
		return files, nil
	}
	for _, item := range items {
		value, found := data[item.Key]
		if !found && optional {
			continue
		}
		if !found {
			return nil, fmt.Errorf("references non-existent %s key: %s", what, item.Key)
		}
		files[item.Path] = File{Data: value, Mode: permissions(itemMode(item.Mode, mode))}
	}
	return files, nil
}

// downwardFiles are the files of a downward API source.
func downwardFiles(fields Fields, items []v1.DownwardAPIVolumeFile, mode int32) (Files, error) {
	files := Files{}
	for _, item := range items {
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = fields.FileField(item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, err = fields.Resource(item.ResourceFieldRef)
		default:
			err = fmt.Errorf("item %q has neither fieldRef nor resourceFieldRef", item.Path)
		}
		if err != nil {
			return nil, err
		}
		files[item.Path] = File{Data: []byte(value), Mode: permissions(itemMode(item.Mode, mode))}
	}
	return files, nil
}

func itemMode(own *int32, mode int32) int32 {
	if own != nil {
		return *own
	}
	return mode
}

// permissions drops everything but the nine bits that the API allows.
func permissions(mode int32) fs.FileMode { return fs.FileMode(mode) & fs.ModePerm }
