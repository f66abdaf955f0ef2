package view

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// Redacted returns a pod with the status that the node reports. Metadata and spec are reduced to an
// outline: every local user can read it, and arguments and variables of containers may be secret.
func Redacted(pod *v1.Pod, status *v1.PodStatus) v1.Pod {
	if status == nil {
		status = &pod.Status
	}
	return v1.Pod{ObjectMeta: identity(&pod.ObjectMeta), Spec: outline(&pod.Spec), Status: *status.DeepCopy()}
}

// identity is the metadata that distinguishes pods. Only the annotations of the pod's source are
// shown: kubectl apply keeps the whole manifest in an annotation, with the values of variables, and
// other tools may do the same.
func identity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	shown := metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, GenerateName: meta.GenerateName, UID: meta.UID,
		ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
		DeletionGracePeriodSeconds: meta.DeletionGracePeriodSeconds,
		Labels:                     meta.Labels, OwnerReferences: meta.OwnerReferences, Finalizers: meta.Finalizers,
	}
	for _, key := range []string{podstatus.SourceAnnotation, podstatus.HashAnnotation, podstatus.SeenAnnotation, v1.MirrorPodAnnotationKey} {
		if value, ok := meta.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&shown, key, value)
		}
	}
	return *shown.DeepCopy()
}

func outline(spec *v1.PodSpec) v1.PodSpec {
	names := func(containers []v1.Container) (list []v1.Container) {
		for _, c := range containers {
			list = append(list, v1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy})
		}
		return list
	}
	return v1.PodSpec{
		NodeName:          spec.NodeName,
		RestartPolicy:     spec.RestartPolicy,
		PriorityClassName: spec.PriorityClassName,
		InitContainers:    names(spec.InitContainers),
		Containers:        names(spec.Containers),
	}
}
