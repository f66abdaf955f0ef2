package queryapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/localhost"
	"github.com/statusd/statusd/internal/view"
)

var (
	podListExample = v1.PodList{}
	statusExample  = metav1.Status{}
)

// states are the states by which a list can be filtered.
var states = []explain.State{
	explain.StateUnscheduled, explain.StateStarting, explain.StateInitializing, explain.StateReady, explain.StateNotReady, explain.StateTerminating,
	explain.StateSucceeded, explain.StateFailed, explain.StateRejected, explain.StateEvicted, explain.StateUnknown,
}

// servePods lists the pods of this node with the statuses that it reports, as a v1.PodList.
func (s *Server) servePods(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, uid := range s.options.Source.UIDs() {
		if p, ok := s.options.Source.Pod(uid); ok {
			list.Items = append(list.Items, view.Redacted(p.Facts.Pod, p.Facts.Status))
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
		badRequest(w, "state %s is not known, want one of %v", localhost.Short(string(state)), states)
		return
	}
	gone := query.Get("gone")
	if gone != "" && gone != "true" && gone != "false" {
		badRequest(w, "gone is %s, want true or false", localhost.Short(gone))
		return
	}
	// The revision is read first: a watch from it includes changes made while the pods are read.
	s.hub.refresh()
	list := view.PodList{Revision: s.revision(s.hub.current()), Items: []view.PodSummary{}}
	add := func(summary view.PodSummary) {
		if (namespace == "" || summary.Namespace == namespace) && (state == "" || summary.State == state) {
			list.Items = append(list.Items, summary)
		}
	}
	found := view.FindingsOf(s.options.Sources)
	for _, uid := range s.options.Source.UIDs() {
		if p, ok := s.options.Source.Pod(uid); ok {
			summary, _ := view.Summarize(p, s.options.Location)
			found.Count(&summary)
			add(summary)
		}
	}
	if gone == "true" {
		for _, h := range s.options.Source.Gone() {
			add(view.GoneSummary(h))
		}
	}
	slices.SortFunc(list.Items, func(a, b view.PodSummary) int {
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

// serveLog answers with the end of the log of a container of a pod that is there.
func (s *Server) serveLog(w http.ResponseWriter, r *http.Request, values map[string]string) {
	namespace, name := values["namespace"], values["name"]
	container, previous := r.URL.Query().Get("container"), r.URL.Query().Get("previous")
	if !checkNames(w, namespace, name) {
		return
	}
	if reasons := validation.IsDNS1123Label(container); len(reasons) > 0 {
		badRequest(w, "container %s: %s", localhost.Short(container), strings.Join(reasons, "; "))
		return
	}
	if previous != "" && previous != "true" && previous != "false" {
		badRequest(w, "previous is %s, want true or false", localhost.Short(previous))
		return
	}
	if s.options.Logs == nil {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "logs are not served here; kubectl logs reads them")
		return
	}
	if !localhost.FromOwner(r) {
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "logs are served to root and to the user of statusd only; kubectl logs reads them with the rights of the cluster")
		return
	}
	pod, ok := s.find(namespace, name)
	if !ok {
		notFound(w, namespace, name)
		return
	}
	answered := view.ContainerLog{Container: container, Previous: previous == "true"}
	lines, err := s.options.Logs.Log(r.Context(), pod.Facts.Pod.UID, container, answered.Previous)
	switch {
	case errors.Is(err, view.ErrNoLog):
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "container %s of pod %s/%s has no such log", container, namespace, name)
	case err != nil:
		fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the log cannot be read now")
	default:
		answered.Lines = append([]string{}, lines...)
		answer(w, http.StatusOK, answered)
	}
}

func notFound(w http.ResponseWriter, namespace, name string) {
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pod %s/%s is neither on this node nor in its history", namespace, name)
}

// detail is everything that is known of the newest pod of a name.
func (s *Server) detail(namespace, name string) (view.PodDetail, bool) {
	if p, ok := s.find(namespace, name); ok {
		detail := view.Detail(p, view.RecordsOf(s.options.Source, p), s.options.Location)
		view.FindingsOf(s.options.Sources).Add(&detail)
		detail.LogsServed = s.options.Logs != nil
		return detail, true
	}
	history, ok := s.options.Source.History(namespace, name)
	if !ok {
		return view.PodDetail{}, false
	}
	if history.Gone == nil && len(history.Records) > 0 { // the history records it a moment later
		history.Gone = &history.Records[len(history.Records)-1].Observed
	}
	detail := view.GoneDetail(history)
	view.FindingsOf(s.options.Sources).Add(&detail)
	return detail, true
}

// find returns the pod of a name. If the pod was re-created while the old one terminates, it
// returns the new one.
func (s *Server) find(namespace, name string) (found view.Pod, ok bool) {
	s.hub.refresh()
	r, _, _ := s.hub.newest(namespace, name)
	if r == nil || r.kind != eventPod {
		return view.Pod{}, false
	}
	return s.options.Source.Pod(r.uid)
}

func (s *Server) serveNode(w http.ResponseWriter, _ *http.Request, _ map[string]string) {
	s.hub.refresh()
	answer(w, http.StatusOK, s.hub.node())
}

// checkNames answers with an error if a namespace or a name cannot be one.
func checkNames(w http.ResponseWriter, namespace, name string) bool {
	if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
		badRequest(w, "namespace %s: %s", localhost.Short(namespace), strings.Join(reasons, "; "))
		return false
	}
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		badRequest(w, "name %s: %s", localhost.Short(name), strings.Join(reasons, "; "))
		return false
	}
	return true
}

// revision is a revision as clients see it.
func (s *Server) revision(number uint64) string { return fmt.Sprintf("%s-%d", s.options.Epoch, number) }
