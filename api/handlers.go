package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusd/statusd/explain"
)

var (
	podListExample = v1.PodList{}
	statusExample  = metav1.Status{}
)

// states are those that a list can be limited to.
var states = []explain.State{
	explain.StateUnscheduled, explain.StateStarting, explain.StateInitializing, explain.StateReady, explain.StateNotReady, explain.StateTerminating,
	explain.StateSucceeded, explain.StateFailed, explain.StateRejected, explain.StateEvicted, explain.StateUnknown,
}

// servePods lists the pods of this node with the statuses that it reports, as a v1.PodList.
func (s *Server) servePods(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, uid := range s.options.Source.UIDs() {
		if p, ok := s.options.Source.Pod(uid); ok {
			list.Items = append(list.Items, redacted(p.Facts.Pod, p.Facts.Status))
		}
	}
	slices.SortFunc(list.Items, func(a, b v1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	answer(w, http.StatusOK, list)
}

func (s *Server) serveSummaries(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	query := r.URL.Query()
	namespace, state := query.Get("namespace"), explain.State(query.Get("state"))
	if namespace != "" && !checkNames(w, namespace, "any") {
		return
	}
	if state != "" && !slices.Contains(states, state) {
		badRequest(w, "state %s is not known, want one of %v", short(string(state)), states)
		return
	}
	gone := query.Get("gone")
	if gone != "" && gone != "true" && gone != "false" {
		badRequest(w, "gone is %s, want true or false", short(gone))
		return
	}
	// The revision goes first: what changes while the pods are read is in a watch from it.
	s.hub.refresh()
	list := PodList{Revision: s.revision(s.hub.current()), Items: []PodSummary{}}
	add := func(summary PodSummary) {
		if (namespace == "" || summary.Namespace == namespace) && (state == "" || summary.State == state) {
			list.Items = append(list.Items, summary)
		}
	}
	found := findingsOf(s.options)
	for _, uid := range s.options.Source.UIDs() {
		if p, ok := s.options.Source.Pod(uid); ok {
			summary, _ := Summarize(p, s.options.Location)
			found.count(&summary)
			add(summary)
		}
	}
	if gone == "true" {
		for _, h := range s.options.Source.Gone() {
			add(goneSummary(h))
		}
	}
	slices.SortFunc(list.Items, func(a, b PodSummary) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	answer(w, http.StatusOK, list)
}

func (s *Server) serveDetail(w http.ResponseWriter, _ *http.Request, values map[string]string) {
	namespace, name := values["namespace"], values["name"]
	if !checkNames(w, namespace, name) {
		return
	}
	detail, ok := s.detail(namespace, name)
	if !ok {
		notFound(w, namespace, name)
		return
	}
	answer(w, http.StatusOK, detail)
}

func notFound(w http.ResponseWriter, namespace, name string) {
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pod %s/%s is neither on this node nor in its history", namespace, name)
}

// detail is everything that is known of the newest pod of a name.
func (s *Server) detail(namespace, name string) (PodDetail, bool) {
	if p, ok := s.find(namespace, name); ok {
		detail := describe(p, recordsOf(s.options.Source, p), s.options.Location)
		findingsOf(s.options).add(&detail)
		return detail, true
	}
	history, ok := s.options.Source.History(namespace, name)
	if !ok {
		return PodDetail{}, false
	}
	if history.Gone == nil && len(history.Records) > 0 { // the history learns of it a moment later
		history.Gone = &history.Records[len(history.Records)-1].Observed
	}
	detail := goneDetail(history)
	findingsOf(s.options).add(&detail)
	return detail, true
}

// recordsOf are the history of a pod, without that of an earlier one of its name.
func recordsOf(source Source, p Pod) []Record {
	pod := p.Facts.Pod
	history, ok := source.History(pod.Namespace, pod.Name)
	if !ok || history.UID != pod.UID {
		return nil
	}
	return history.Records
}

// find returns the pod of a name. Of two, one of which is being deleted, it is the later one.
func (s *Server) find(namespace, name string) (found Pod, ok bool) {
	s.hub.refresh()
	r, _, _ := s.hub.newest(namespace, name)
	if r == nil || r.kind != eventPod {
		return Pod{}, false
	}
	return s.options.Source.Pod(r.uid)
}

func (s *Server) serveNode(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	s.hub.refresh()
	answer(w, http.StatusOK, s.hub.node())
}

// complete fills in what a source leaves empty: lists are not null.
func (n *NodeDetail) complete(records []Record) {
	n.Pods = map[explain.State]int{}
	n.History = append([]Record{}, records...)
	n.Conditions = append([]v1.NodeCondition{}, n.Conditions...)
	n.Addresses = append([]v1.NodeAddress{}, n.Addresses...)
	n.Problems = append([]string{}, n.Problems...)
	for _, list := range []*v1.ResourceList{&n.Capacity, &n.Allocatable, &n.Requested} {
		if *list == nil {
			*list = v1.ResourceList{}
		}
	}
}

// checkNames answers with an error if a namespace or a name cannot be one.
func checkNames(w http.ResponseWriter, namespace, name string) bool {
	if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
		badRequest(w, "namespace %s: %s", short(namespace), strings.Join(reasons, "; "))
		return false
	}
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		badRequest(w, "name %s: %s", short(name), strings.Join(reasons, "; "))
		return false
	}
	return true
}

// revision is a revision as clients see it.
func (s *Server) revision(number uint64) string { return fmt.Sprintf("%s-%d", s.options.Epoch, number) }
