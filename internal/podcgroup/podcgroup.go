// Package podcgroup has the names of the control groups of pods and containers: as used by the kubelet, with
// both of its drivers, and by the process runtime of this module.
package podcgroup

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

var (
	pod       = regexp.MustCompile(`(?:(?:^|[-/])pod|^/?statusd/)([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:/|$)`)
	container = regexp.MustCompile(`^(?:cri-containerd-|crio-|docker-)?([0-9a-f]{32,64})(?:\.scope)?$`)
)

// Split takes the UID of the pod and the ID of the container from the path of a control group. Both are
// empty if it is not of a pod, the ID alone if it is the pod's own.
func Split(path string) (uid types.UID, id string) {
	m := pod.FindStringSubmatchIndex(path)
	if m == nil {
		return "", ""
	}
	uid = types.UID(strings.ReplaceAll(path[m[2]:m[3]], "_", "-"))
	first, _, _ := strings.Cut(path[m[1]:], "/")
	if c := container.FindStringSubmatch(first); c != nil {
		id = c[1]
	}
	return uid, id
}
