package kubeletapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/runtime"
)

// checks are the health checks of the kubelet that apply here: syncloop is whether the agent does its work.
var checks = []string{"ping", "log", "syncloop"}

// serveHealth answers whether the agent does its work, as a whole or one check of it.
func (s *Server) serveHealth(w http.ResponseWriter, request *http.Request) {
	failed := map[string]error{}
	if err := s.options.Healthy(); err != nil {
		failed["syncloop"] = err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if name := strings.TrimPrefix(request.URL.Path, "/healthz/"); name != request.URL.Path {
		if err := failed[name]; err != nil {
			http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "ok")
		return
	}
	var report strings.Builder
	for _, name := range checks {
		if failed[name] != nil {
			fmt.Fprintf(&report, "[-]%s failed: reason withheld\n", name)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", name)
	}
	switch {
	case len(failed) > 0:
		s.log.Warn("health check failed", "err", failed["syncloop"])
		http.Error(w, report.String()+"healthz check failed", http.StatusInternalServerError)
	case request.URL.Query().Has("verbose"):
		fmt.Fprintf(w, "%shealthz check passed\n", report.String())
	default:
		fmt.Fprint(w, "ok")
	}
}

func (s *Server) serveConfig(w http.ResponseWriter, _ *http.Request) {
	config := map[string]any{}
	if s.options.Config != nil {
		config["statusdconfig"] = s.options.Config()
	}
	serveJSON(w, config)
}

func serveJSON(w http.ResponseWriter, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content) // the client may have gone
}

// servePods lists the pods of the node with the statuses that it reports.
func (s *Server) servePods(w http.ResponseWriter, _ *http.Request, _ []string) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, pod := range s.options.Pods.All() {
		list.Items = append(list.Items, *pod)
	}
	serveJSON(w, list)
}

// serveRunningPods lists what runs, in the words of the runtime: who the pods are, and which containers they have.
func (s *Server) serveRunningPods(w http.ResponseWriter, request *http.Request, _ []string) {
	found, err := s.options.Runtime.Pods(request.Context())
	if err != nil {
		answer(w, http.StatusInternalServerError, err.Error())
		return
	}
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, pod := range found {
		if running := runningPod(pod); running != nil {
			list.Items = append(list.Items, *running)
		}
	}
	serveJSON(w, list)
}

func runningPod(pod runtime.Pod) *v1.Pod {
	if pod.Manifest == nil {
		return nil
	}
	running := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Manifest.Name, Namespace: pod.Manifest.Namespace, UID: pod.Manifest.UID}}
	for _, c := range pod.Containers {
		if c.State == runtime.Running {
			running.Spec.Containers = append(running.Spec.Containers, v1.Container{Name: c.Name, Image: c.Image})
		}
	}
	if len(running.Spec.Containers) == 0 {
		return nil
	}
	return running
}
