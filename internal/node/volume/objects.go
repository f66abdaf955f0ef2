package volume

import (
	"context"
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrNotFound is wrapped by errors of [Objects] if the API server does not have the object.
var ErrNotFound = errors.New("not found")

// Objects reads the objects that pods refer to. Implementations may be called from any goroutine
// and return objects that the caller must not change.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
	// Token requests a token of a service account.
	Token(ctx context.Context, namespace, account string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
	// Follow calls changed, from any goroutine, when one of the objects may have changed. It replaces
	// the earlier references of the pod; without references it stops following. It does not block, and
	// changed must not either.
	Follow(pod types.UID, references []Reference, changed func())
}

// Kind is the kind of an object that volumes are made of.
type Kind string

// The kinds of objects.
const (
	ConfigMap Kind = "ConfigMap"
	Secret    Kind = "Secret"
)

// Reference names an object.
type Reference struct {
	Kind            Kind
	Namespace, Name string
}

// References lists the objects that the files of the pod's volumes are made of, each once, in
// the order of the spec.
func References(pod *v1.Pod) []Reference {
	var all []Reference
	seen := map[Reference]bool{}
	add := func(kind Kind, name string) {
		reference := Reference{Kind: kind, Namespace: pod.Namespace, Name: name}
		if !seen[reference] {
			seen[reference] = true
			all = append(all, reference)
		}
	}
	for i := range pod.Spec.Volumes {
		for _, source := range sources(&pod.Spec.Volumes[i].VolumeSource) {
			if source.ConfigMap != nil {
				add(ConfigMap, source.ConfigMap.Name)
			}
			if source.Secret != nil {
				add(Secret, source.Secret.Name)
			}
		}
	}
	return all
}

// HasContents reports whether this package fills the volume.
func HasContents(source *v1.VolumeSource) bool {
	return source.ConfigMap != nil || source.Secret != nil || source.DownwardAPI != nil || source.Projected != nil
}

// sources are what a volume is projected from: a configMap, secret or downwardAPI volume
// is a projection of one source.
func sources(volume *v1.VolumeSource) []v1.VolumeProjection {
	switch {
	case volume.ConfigMap != nil:
		from := volume.ConfigMap
		return []v1.VolumeProjection{{ConfigMap: &v1.ConfigMapProjection{
			LocalObjectReference: from.LocalObjectReference, Items: from.Items, Optional: from.Optional,
		}}}
	case volume.Secret != nil:
		from := volume.Secret
		return []v1.VolumeProjection{{Secret: &v1.SecretProjection{
			LocalObjectReference: v1.LocalObjectReference{Name: from.SecretName}, Items: from.Items, Optional: from.Optional,
		}}}
	case volume.DownwardAPI != nil:
		return []v1.VolumeProjection{{DownwardAPI: &v1.DownwardAPIProjection{Items: volume.DownwardAPI.Items}}}
	case volume.Projected != nil:
		return volume.Projected.Sources
	}
	return nil
}

// defaultMode is the mode of files that say nothing else.
func defaultMode(volume *v1.VolumeSource) int32 {
	var mode *int32
	switch {
	case volume.ConfigMap != nil:
		mode = volume.ConfigMap.DefaultMode
	case volume.Secret != nil:
		mode = volume.Secret.DefaultMode
	case volume.DownwardAPI != nil:
		mode = volume.DownwardAPI.DefaultMode
	case volume.Projected != nil:
		mode = volume.Projected.DefaultMode
	}
	if mode == nil {
		return 0o644
	}
	return *mode
}
