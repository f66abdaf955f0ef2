package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// contentUID returns the UID of a static pod. It is computed before defaults are filled in,
// so that a later version with more defaults does not restart every static pod of the node.
func contentUID(pod *v1.Pod, node, file string) (types.UID, error) {
	content, err := json.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("manifest: hash pod %s: %w", pod.Name, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "node %q file %q pod %s", node, file, content)
	return types.UID(hex.EncodeToString(h.Sum(nil)[:16])), nil
}

// staticName returns the name of a static pod, unique in the cluster although every node
// may have the same manifests.
func staticName(name, node string) string { return name + "-" + strings.ToLower(node) }

// identify turns a decoded and defaulted pod into the static pod of this node.
func identify(pod *v1.Pod, uid types.UID, node string) {
	pod.UID = uid
	pod.Name = staticName(pod.Name, node)
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Spec.NodeName = node
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podstatus.SourceAnnotation, podstatus.SourceFile)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podstatus.HashAnnotation, string(uid))
	tolerateEverything(pod)
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
}

// tolerateEverything adds the toleration that keeps taints of the node from evicting a
// static pod.
func tolerateEverything(pod *v1.Pod) {
	always := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for _, t := range pod.Spec.Tolerations {
		if t.MatchToleration(&always) {
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, always)
}
