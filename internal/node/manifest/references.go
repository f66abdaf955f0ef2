package manifest

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateReferences rejects a static pod that refers to other objects of the API. The node
// must be able to run the pod alone, and the API server admits no mirror pod with such
// references: otherwise a node could read any secret by writing a manifest.
func validateReferences(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forbid := func(at *field.Path, what string) {
		errs = append(errs, field.Forbidden(at, "a static pod may not reference "+what))
	}
	if spec.ServiceAccountName != "" {
		forbid(path.Child("serviceAccountName"), "service accounts")
	}
	if spec.DeprecatedServiceAccount != "" {
		forbid(path.Child("serviceAccount"), "service accounts")
	}
	if len(spec.ImagePullSecrets) > 0 {
		forbid(path.Child("imagePullSecrets"), "secrets")
	}
	if len(spec.ResourceClaims) > 0 {
		forbid(path.Child("resourceClaims"), "resource claims")
	}
	for i := range spec.Volumes {
		at := path.Child("volumes").Index(i)
		for _, ref := range volumeReferences(spec.Volumes[i].VolumeSource, at) {
			forbid(ref.path, ref.what)
		}
	}
	for i := range spec.InitContainers {
		environmentReferences(&spec.InitContainers[i], path.Child("initContainers").Index(i), forbid)
	}
	for i := range spec.Containers {
		environmentReferences(&spec.Containers[i], path.Child("containers").Index(i), forbid)
	}
	return errs
}

func environmentReferences(c *v1.Container, path *field.Path, forbid func(*field.Path, string)) {
	for i, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		at := path.Child("env").Index(i).Child("valueFrom")
		if e.ValueFrom.SecretKeyRef != nil {
			forbid(at.Child("secretKeyRef"), "secrets")
		}
		if e.ValueFrom.ConfigMapKeyRef != nil {
			forbid(at.Child("configMapKeyRef"), "config maps")
		}
	}
	for i, e := range c.EnvFrom {
		at := path.Child("envFrom").Index(i)
		if e.SecretRef != nil {
			forbid(at.Child("secretRef"), "secrets")
		}
		if e.ConfigMapRef != nil {
			forbid(at.Child("configMapRef"), "config maps")
		}
	}
}

type reference struct {
	path *field.Path
	what string
}

// volumeReferences returns the objects of the API that a volume refers to.
func volumeReferences(v v1.VolumeSource, path *field.Path) []reference {
	var refs []reference
	add := func(needed bool, what string, at ...string) {
		if needed {
			refs = append(refs, reference{path.Child(at[0], at[1:]...), what})
		}
	}
	add(v.Secret != nil, "secrets", "secret")
	add(v.ConfigMap != nil, "config maps", "configMap")
	add(v.PersistentVolumeClaim != nil, "persistent volume claims", "persistentVolumeClaim")
	add(v.Ephemeral != nil, "persistent volume claims", "ephemeral")
	add(v.CSI != nil, "CSI drivers", "csi")
	add(v.Glusterfs != nil, "endpoints", "glusterfs")
	add(v.AzureFile != nil, "secrets", "azureFile")
	add(v.CephFS != nil && v.CephFS.SecretRef != nil, "secrets", "cephfs", "secretRef")
	add(v.Cinder != nil && v.Cinder.SecretRef != nil, "secrets", "cinder", "secretRef")
	add(v.FlexVolume != nil && v.FlexVolume.SecretRef != nil, "secrets", "flexVolume", "secretRef")
	add(v.ISCSI != nil && v.ISCSI.SecretRef != nil, "secrets", "iscsi", "secretRef")
	add(v.RBD != nil && v.RBD.SecretRef != nil, "secrets", "rbd", "secretRef")
	add(v.ScaleIO != nil && v.ScaleIO.SecretRef != nil, "secrets", "scaleIO", "secretRef")
	add(v.StorageOS != nil && v.StorageOS.SecretRef != nil, "secrets", "storageos", "secretRef")
	if v.Projected == nil {
		return refs
	}
	for i, s := range v.Projected.Sources {
		at := path.Child("projected", "sources").Index(i)
		for _, ref := range []struct {
			needed bool
			field  string
			what   string
		}{
			{s.Secret != nil, "secret", "secrets"},
			{s.ConfigMap != nil, "configMap", "config maps"},
			{s.ServiceAccountToken != nil, "serviceAccountToken", "service accounts"},
			{s.ClusterTrustBundle != nil, "clusterTrustBundle", "cluster trust bundles"},
			{s.PodCertificate != nil, "podCertificate", "pod certificates"},
		} {
			if ref.needed {
				refs = append(refs, reference{at.Child(ref.field), ref.what})
			}
		}
	}
	return refs
}

// countSources returns how many sources of a volume are set.
func countSources(v v1.VolumeSource) int {
	value, n := reflect.ValueOf(v), 0
	for i := range value.NumField() {
		if !value.Field(i).IsNil() {
			n++
		}
	}
	return n
}
