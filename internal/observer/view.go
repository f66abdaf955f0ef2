package observer

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/podstatus"
)

// view is what one audit has found. It is never changed once it is served.
type view struct {
	facts  audit.Facts
	report audit.Report
	pods   map[types.UID]subject
	// drift has the drift of each pod; the node's drift is under the empty UID.
	drift map[types.UID][]audit.Difference
	// deliveries has how far the API has received the kubelet's status, for pods whose kubelet status
	// is known.
	deliveries map[types.UID]podstatus.Delivery
}

// subject is a pod as API and kubelet have it, nil if they do not. A mirror pod and its static pod are one,
// which is found by the UID of the mirror.
type subject struct {
	api, kubelet *v1.Pod
	// own: the status of kubelet is the kubelet's own decision.
	own bool
}

func newView(facts audit.Facts, report audit.Report) *view {
	v := &view{facts: facts, report: report, pods: make(map[types.UID]subject, len(facts.APIPods)), drift: map[types.UID][]audit.Difference{},
		deliveries: map[types.UID]podstatus.Delivery{}}
	mirrors := map[types.UID]types.UID{} // the UID of a mirror by that of its static pod
	for uid, s := range facts.APIPods {
		if s.Pod == nil {
			continue
		}
		v.pods[uid] = subject{api: s.Pod}
		if hash := s.Pod.Annotations[v1.MirrorPodAnnotationKey]; hash != "" {
			if other, ok := mirrors[types.UID(hash)]; !ok || newer(s.Pod, v.pods[other].api) {
				mirrors[types.UID(hash)] = uid
			}
		}
	}
	for uid, s := range facts.KubeletPods {
		if s.Pod == nil || podstatus.IsMirror(s.Pod) {
			continue // its static pod is in the list
		}
		if mirror, ok := mirrors[uid]; ok {
			uid = mirror
		}
		p := v.pods[uid]
		p.kubelet, p.own = s.Pod, facts.KubeletStatuses || podstatus.IsStatic(s.Pod)
		v.pods[uid] = p
	}
	for _, d := range report.Differences {
		if d.Drift {
			v.drift[d.Pod.UID] = append(v.drift[d.Pod.UID], d)
		}
	}
	return v
}

// newer decides between two mirrors of one static pod.
func newer(a, b *v1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return a.DeletionTimestamp == nil
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) > 0
}

// uids are the pods of the view, sorted.
func (v *view) uids() []types.UID { return slices.Sorted(maps.Keys(v.pods)) }

// pod is the object as the API has it, or else the kubelet.
func (s subject) pod() *v1.Pod {
	if s.api != nil {
		return s.api
	}
	return s.kubelet
}

// decided returns the kubelet's status if it is the kubelet's own decision or the API lacks the
// pod, or else the API's status.
func (s subject) decided() *v1.PodStatus {
	if s.kubelet != nil && (s.own || s.api == nil) {
		return &s.kubelet.Status
	}
	return &s.api.Status
}

// open counts the drift of each kind.
func (v *view) open() map[audit.Kind]int {
	counts := map[audit.Kind]int{}
	for i := range v.report.Differences {
		if d := &v.report.Differences[i]; d.Drift {
			counts[d.Kind]++
		}
	}
	return counts
}
