package process

import (
	"fmt"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/internal/node/volume"
)

// checkVolume goes through the kinds of volumes by reflection, so that a kind that the
// API adds is rejected by its name from the beginning.
func (c *checker) checkVolume(path *field.Path, source *v1.Volume) {
	kinds := reflect.ValueOf(source.VolumeSource)
	for i := range kinds.NumField() {
		name, _, _ := strings.Cut(kinds.Type().Field(i).Tag.Get("json"), ",")
		switch name {
		case "emptyDir", "hostPath", "configMap", "secret", "downwardAPI", "projected":
			continue
		}
		c.reject(!kinds.Field(i).IsNil(), path.Child(name),
			"only emptyDir, hostPath, configMap, secret, downwardAPI and projected volumes are supported")
	}
	if dir := source.EmptyDir; dir != nil {
		path := path.Child("emptyDir")
		// A sizeLimit is kept as by the kubelet: a pod that uses more is evicted.
		switch dir.Medium {
		case v1.StorageMediumDefault:
		case v1.StorageMediumMemory:
			c.reject(c.noMemory != "", path.Child("medium"), c.noMemory)
		default:
			c.reject(true, path.Child("medium"), "huge pages are not given out; leave medium out, or use Memory")
		}
	}
	c.reject(source.ConfigMap != nil && !c.objects, path.Child("configMap"), noObjects)
	c.reject(source.Secret != nil && !c.objects, path.Child("secret"), noObjects)
	if source.DownwardAPI != nil {
		c.checkDownward(path.Child("downwardAPI", "items"), source.DownwardAPI.Items)
	}
	if source.Projected != nil {
		for i, part := range source.Projected.Sources {
			c.checkProjection(path.Child("projected", "sources").Index(i), part)
		}
	}
}

// checkProjection does the same for the sources of a projected volume.
func (c *checker) checkProjection(path *field.Path, part v1.VolumeProjection) {
	kinds := reflect.ValueOf(part)
	for i := range kinds.NumField() {
		name, _, _ := strings.Cut(kinds.Type().Field(i).Tag.Get("json"), ",")
		switch name {
		case "configMap", "secret", "serviceAccountToken":
			c.reject(!kinds.Field(i).IsNil() && !c.objects, path.Child(name), noObjects)
		case "downwardAPI":
		default:
			c.reject(!kinds.Field(i).IsNil(), path.Child(name),
				"only configMap, secret, downwardAPI and serviceAccountToken can be projected")
		}
	}
	if part.DownwardAPI != nil {
		c.checkDownward(path.Child("downwardAPI", "items"), part.DownwardAPI.Items)
	}
}

func (c *checker) checkDownward(path *field.Path, items []v1.DownwardAPIVolumeFile) {
	for i, item := range items {
		if item.FieldRef != nil {
			_, err := volume.Fields{Pod: &v1.Pod{}}.FileField(item.FieldRef.FieldPath)
			c.reject(err != nil, path.Index(i).Child("fieldRef", "fieldPath"), "this field is not known to the runtime")
		}
		if item.ResourceFieldRef != nil {
			c.checkResourceRef(path.Index(i).Child("resourceFieldRef", "resource"), item.ResourceFieldRef)
		}
	}
}

const notReadOnly = "nothing can be mounted here, and a process can write wherever its user can; only volumes of config maps, secrets, the downward API and projections are read-only"

// checkMounts rejects what a directory that is merely named cannot do, and mounts whose
// variables would have the same name.
func (c *checker) checkMounts(path *field.Path, mounts []v1.VolumeMount) {
	seen := map[string]string{} // what a variable stands for
	for i, mount := range mounts {
		path := path.Index(i)
		source := c.volumes[mount.Name]
		// Volumes with contents are read-only in any case: what is written there is undone.
		written := source == nil || !volume.HasContents(source)
		c.reject(mount.ReadOnly && written && !c.views, path.Child("readOnly"), notReadOnly)
		if mode := mount.RecursiveReadOnly; mode != nil && *mode != v1.RecursiveReadOnlyDisabled && !c.views {
			c.reject(written || *mode == v1.RecursiveReadOnlyEnabled, path.Child("recursiveReadOnly"), notReadOnly)
		}
		c.reject(mount.MountPropagation != nil && *mount.MountPropagation != v1.MountPropagationNone,
			path.Child("mountPropagation"), "what is mounted for a container is seen by it alone")

		c.checkTaken(seen, path.Child("name"), VolumeVariable(mount.Name), mount.Name)
		c.checkTaken(seen, path.Child("mountPath"), MountVariable(mount.MountPath), mount.MountPath)
	}
}

// checkTaken rejects what would be handed over under a name that something else has.
func (c *checker) checkTaken(seen map[string]string, path *field.Path, variable, value string) {
	other, taken := seen[variable]
	c.reject(taken && other != value, path,
		fmt.Sprintf("would be handed over as %s, which already stands for %s; choose names that differ in letters or digits", variable, other))
	seen[variable] = value
}
