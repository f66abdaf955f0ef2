package process

import (
	"fmt"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/runtime"
)

// checkVolume goes through the kinds of volumes by reflection, so that a kind that the
// API adds is rejected by its name from the beginning.
func (c *checker) checkVolume(path *field.Path, volume *v1.Volume) {
	source := reflect.ValueOf(volume.VolumeSource)
	for i := range source.NumField() {
		name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
		if name == "emptyDir" || name == "hostPath" {
			continue
		}
		c.reject(!source.Field(i).IsNil(), path.Child(name), "only emptyDir and hostPath volumes are supported")
	}
	if dir := volume.EmptyDir; dir != nil {
		path := path.Child("emptyDir")
		c.reject(dir.Medium != v1.StorageMediumDefault, path.Child("medium"), "emptyDir volumes are directories on disk")
		c.reject(dir.SizeLimit != nil, path.Child("sizeLimit"), "the size of a directory is not limited")
	}
}

// checkMounts rejects what a directory that is merely named cannot do, and mounts whose
// variables would have the same name.
func (c *checker) checkMounts(path *field.Path, mounts []v1.VolumeMount) {
	seen := map[string]string{} // what a variable stands for
	for i, mount := range mounts {
		path := path.Index(i)
		c.reject(mount.ReadOnly, path.Child("readOnly"), "a process can write wherever its user can; nothing is mounted")
		c.reject(mount.RecursiveReadOnly != nil && *mount.RecursiveReadOnly != v1.RecursiveReadOnlyDisabled,
			path.Child("recursiveReadOnly"), "a process can write wherever its user can; nothing is mounted")
		c.reject(mount.MountPropagation != nil && *mount.MountPropagation != v1.MountPropagationNone,
			path.Child("mountPropagation"), "nothing is mounted")
		c.reject(mount.SubPathExpr != "", path.Child("subPathExpr"), "not supported; use subPath")

		c.checkTaken(seen, path.Child("name"), runtime.VolumeVariable(mount.Name), mount.Name)
		c.checkTaken(seen, path.Child("mountPath"), runtime.MountVariable(mount.MountPath), mount.MountPath)
	}
}

// checkTaken rejects what would be handed over under a name that something else has.
func (c *checker) checkTaken(seen map[string]string, path *field.Path, variable, value string) {
	other, taken := seen[variable]
	c.reject(taken && other != value, path,
		fmt.Sprintf("would be handed over as %s, which already stands for %s; choose names that differ in letters or digits", variable, other))
	seen[variable] = value
}
