package status

import (
	"encoding/json"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/podstatus"
	statusd "github.com/statusd/statusd/status"
)

// Delivered is a row of /statusd/delivery: how far the status of a pod has come.
type Delivered struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	UID       string             `json:"uid"`
	Phase     v1.PodPhase        `json:"phase"`
	Delivery  podstatus.Delivery `json:"delivery"`
}

// Explained is the answer of /statusd/explain.
type Explained struct {
	Explanation explain.Explanation `json:"explanation"`
	Sentence    string              `json:"sentence"`
}

// ServeHTTP answers questions about pods behind the kubelet's own authentication and authorization (nodes/proxy).
//
//	GET /statusd/delivery                       how far the status of each pod has come
//	GET /statusd/explain?namespace=NS&name=POD  why a pod is in its state
//	GET /statusd/history?namespace=NS&name=POD  what happened to it, also if it is gone
func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "only GET is supported", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case "/statusd/delivery":
		rows := []Delivered{}
		for _, s := range m.Statuses() {
			delivery, _ := m.Delivery(s.UID)
			rows = append(rows, Delivered{s.Namespace, s.Name, string(s.UID), s.Status.Phase, delivery})
		}
		answer(w, rows)
	case "/statusd/explain":
		namespace, name := r.FormValue("namespace"), r.FormValue("name")
		for _, s := range m.Statuses() {
			if s.Namespace == namespace && s.Name == name {
				m.explain(w, s)
				return
			}
		}
		http.Error(w, "this node has no such pod", http.StatusNotFound)
	case "/statusd/history":
		if pod, ok := m.history.Pod(r.FormValue("namespace"), r.FormValue("name")); ok {
			answer(w, pod)
			return
		}
		http.Error(w, "this node has no such pod, nor its history", http.StatusNotFound)
	default:
		http.NotFound(w, r)
	}
}

func (m *manager) explain(w http.ResponseWriter, s statusd.PodStatus) {
	pod, ok := m.podManager.GetPodByUID(s.UID)
	if !ok {
		http.Error(w, "the pod is gone", http.StatusNotFound)
		return
	}
	delivery, _ := m.Delivery(s.UID)
	e := explain.Pod(explain.Facts{Now: time.Now(), Pod: pod, Status: &s.Status, Delivery: &delivery})
	answer(w, Explained{e, e.Sentence(time.UTC)})
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client has gone
}
