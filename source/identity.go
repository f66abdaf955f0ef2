package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// The annotations by which the kubelet, and everyone who looks at its pods, tells static
// pods and their mirrors apart.
const (
	// SourceAnnotation is where a pod comes from, an [Origin]. Pods of the API need not carry it.
	SourceAnnotation = "kubernetes.io/config.source"
	// HashAnnotation is the identity of a static pod's content, equal to its UID.
	HashAnnotation = "kubernetes.io/config.hash"
	// SeenAnnotation is when a source saw this content first, in RFC 3339.
	SeenAnnotation = "kubernetes.io/config.seen"
	// MirrorAnnotation marks a mirror pod; its value is the hash of the static pod that it shadows.
	MirrorAnnotation = v1.MirrorPodAnnotationKey
)

// IsStatic reports whether a pod comes from a manifest on this node, see [podstatus.IsStatic].
func IsStatic(pod *v1.Pod) bool { return podstatus.IsStatic(pod) }

// IsMirror reports whether a pod is the API's shadow of a static pod, see [podstatus.IsMirror].
func IsMirror(pod *v1.Pod) bool { return podstatus.IsMirror(pod) }

// fromAPI returns a pod of the API with its true source. Every user may set the source
// annotation; a pod that claims to be static would not be written to, nor deleted from the
// API. A mirror keeps the annotation, which it has from its static pod. The pod that is
// passed in is not changed.
func fromAPI(pod *v1.Pod) *v1.Pod {
	claimed, ok := pod.Annotations[SourceAnnotation]
	if !ok || Origin(claimed) == FromAPI || IsMirror(pod) {
		return pod
	}
	corrected := *pod
	corrected.Annotations = maps.Clone(pod.Annotations)
	corrected.Annotations[SourceAnnotation] = string(FromAPI)
	return &corrected
}

// contentUID is the UID of a static pod. It is computed before defaults are filled in, so
// that a statusd which knows more defaults does not restart every static pod of the node.
func contentUID(pod *v1.Pod, node, file string) (types.UID, error) {
	content, err := json.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("source: hash pod %s: %w", pod.Name, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "node %q file %q pod %s", node, file, content)
	return types.UID(hex.EncodeToString(h.Sum(nil)[:16])), nil
}

// staticName is the name of a static pod, unique in the cluster although every node may
// have the same manifests.
func staticName(name, node string) string { return name + "-" + strings.ToLower(node) }

// identify makes a decoded and defaulted pod of a manifest the static pod of this node.
func identify(pod *v1.Pod, uid types.UID, node string) {
	pod.UID = uid
	pod.Name = staticName(pod.Name, node)
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Spec.NodeName = node
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, SourceAnnotation, string(FromFile))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, HashAnnotation, string(uid))
	tolerateEverything(pod)
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
}

// tolerateEverything keeps taints of the node from evicting what its owner put there.
func tolerateEverything(pod *v1.Pod) {
	always := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for _, t := range pod.Spec.Tolerations {
		if t.MatchToleration(&always) {
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, always)
}
