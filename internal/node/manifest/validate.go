package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/podstatus"
)

// validate checks a decoded and defaulted pod of a manifest. It covers what a node needs
// to run the pod and what makes a mirror pod impossible; the API server checks the rest
// when it sees the mirror.
func validate(pod *v1.Pod, node string) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, validateMeta(pod, node, field.NewPath("metadata"))...)
	errs = append(errs, validatePodSpec(&pod.Spec, node, spec)...)
	errs = append(errs, validateVolumes(&pod.Spec, spec.Child("volumes"))...)
	errs = append(errs, validateContainers(&pod.Spec, spec)...)
	errs = append(errs, validateReferences(&pod.Spec, spec)...)
	return errs
}

func validateMeta(pod *v1.Pod, node string, path *field.Path) field.ErrorList {
	meta := pod.ObjectMeta.DeepCopy()
	if meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}
	var errs field.ErrorList
	// Metadata about the owner or the deletion of a pod cannot come from a file.
	for name, set := range map[string]bool{
		"generateName":      meta.GenerateName != "",
		"uid":               meta.UID != "",
		"ownerReferences":   len(meta.OwnerReferences) > 0,
		"finalizers":        len(meta.Finalizers) > 0,
		"deletionTimestamp": meta.DeletionTimestamp != nil,
	} {
		if set {
			errs = append(errs, field.Forbidden(path.Child(name), "a static pod cannot have it: its identity comes from the manifest, its end from removing the manifest"))
		}
	}
	for _, key := range []string{podstatus.SourceAnnotation, podstatus.HashAnnotation, podstatus.SeenAnnotation, v1.MirrorPodAnnotationKey} {
		if _, ok := meta.Annotations[key]; ok {
			errs = append(errs, field.Forbidden(path.Child("annotations").Key(key), "is set by statusd"))
		}
	}
	if meta.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "the node's name will be appended to it"))
		meta.Name = "unnamed"
	}
	meta.GenerateName, meta.OwnerReferences, meta.Finalizers = "", nil, nil
	errs = append(errs, apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, path)...)
	if full := staticName(meta.Name, node); len(full) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.Invalid(path.Child("name"), meta.Name, fmt.Sprintf("with the node's name it is longer than %d characters", validation.DNS1123SubdomainMaxLength)))
	}
	return errs
}

func validatePodSpec(spec *v1.PodSpec, node string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneOf(path.Child("restartPolicy"), spec.RestartPolicy, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)...)
	errs = append(errs, oneOf(path.Child("dnsPolicy"), spec.DNSPolicy, v1.DNSClusterFirst, v1.DNSClusterFirstWithHostNet, v1.DNSDefault, v1.DNSNone)...)
	if spec.NodeName != "" && spec.NodeName != node {
		errs = append(errs, field.Invalid(path.Child("nodeName"), spec.NodeName, fmt.Sprintf("this is node %s, and a static pod runs where its manifest is", node)))
	}
	if s := spec.TerminationGracePeriodSeconds; s != nil {
		errs = append(errs, atLeast(path.Child("terminationGracePeriodSeconds"), *s, 0)...)
	}
	if s := spec.ActiveDeadlineSeconds; s != nil {
		errs = append(errs, atLeast(path.Child("activeDeadlineSeconds"), *s, 1)...)
	}
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "may only be added to a running pod, through the API"))
	}
	return errs
}

func validateVolumes(spec *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, volume := range spec.Volumes {
		at := path.Index(i)
		errs = append(errs, uniqueLabel(at.Child("name"), volume.Name, seen)...)
		if h := volume.HostPath; h != nil && h.Path == "" {
			errs = append(errs, field.Required(at.Child("hostPath", "path"), "which directory or file of the node"))
		}
		if n := countSources(volume.VolumeSource); n > 1 {
			errs = append(errs, field.Invalid(at, volume.Name, fmt.Sprintf("has %d sources, but a volume has one", n)))
		}
	}
	return errs
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func atLeast[T int32 | int64](path *field.Path, value, least T) field.ErrorList {
	if value >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be %d or more", least))}
}

// uniqueLabel checks a name that must be a DNS label and occur once.
func uniqueLabel(path *field.Path, name string, seen sets.Set[string]) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a lower-case name, such as web-1")}
	}
	if seen.Has(name) {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	seen.Insert(name)
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(wrong, "; "))}
	}
	return nil
}

func validateResources(r v1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		if limit := r.Limits[name]; limit.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Child("limits").Key(string(name)), limit.String(), "must not be negative"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request, at := r.Requests[name], path.Child("requests").Key(string(name))
		limit, limited := r.Limits[name]
		switch {
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at, request.String(), "must not exceed the limit of "+limit.String()))
		case !limited && request.Sign() < 0:
			errs = append(errs, field.Invalid(at, request.String(), "must not be negative"))
		}
	}
	return errs
}
