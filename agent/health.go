package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/podstatus"
)

// maxConnections bounds what the endpoints take of the process's file descriptors: every local
// user can connect. Those beyond it wait.
const maxConnections = 64

// A check is one thing that must be true of an agent that does its work.
type check struct {
	name string
	err  func() error
}

// endpoints serves what a local supervisor and a scraper want to know.
type endpoints struct {
	listener net.Listener
	// alive returns if the agent is not stuck.
	alive func()
	// ready are the checks of /readyz.
	ready   []check
	pods    func() []v1.Pod
	metrics *prometheus.Registry
	// pending is what /debug/pending shows.
	pending func() any
}

func (e *endpoints) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", e.livez)
	mux.HandleFunc("GET /healthz", e.livez) // the older name of the same question
	mux.HandleFunc("GET /readyz", e.readyz)
	mux.HandleFunc("GET /pods", e.servePods)
	mux.HandleFunc("GET /debug/pending", func(w http.ResponseWriter, _ *http.Request) { serveJSON(w, e.pending()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.metrics, promhttp.HandlerOpts{}))
	return mux
}

// livez answers as long as the agent is not stuck. Whether the API server can be reached
// does not matter: to restart the agent would not bring it back.
func (e *endpoints) livez(w http.ResponseWriter, _ *http.Request) {
	e.alive()
	fmt.Fprintln(w, "ok")
}

// readyz answers whether the agent does all of its work; ?verbose names each check, and
// ?exclude=NAME leaves one out.
func (e *endpoints) readyz(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	var report strings.Builder
	failed := false
	for _, c := range e.ready {
		if slices.Contains(query["exclude"], c.name) {
			fmt.Fprintf(&report, "[+]%s excluded\n", c.name)
			continue
		}
		if err := c.err(); err != nil {
			failed = true
			fmt.Fprintf(&report, "[-]%s failed: %v\n", c.name, err)
			continue
		}
		fmt.Fprintf(&report, "[+]%s ok\n", c.name)
	}
	switch {
	case failed:
		http.Error(w, report.String()+"readyz check failed", http.StatusServiceUnavailable)
	case query.Has("verbose"):
		fmt.Fprint(w, report.String(), "readyz check passed\n")
	default:
		fmt.Fprintln(w, "ok")
	}
}

// servePods lists the pods of this node with the statuses that it reports, as a v1.PodList.
func (e *endpoints) servePods(w http.ResponseWriter, _ *http.Request) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: e.pods()}
	serveJSON(w, list)
}

func serveJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	// The one error there can be is that the reader has gone away.
	_ = json.NewEncoder(w).Encode(value)
}

// pods are those of this node, each with the status that it reports. Of metadata and spec only the
// outline is shown: every local user can read it, and what containers are given may be secret.
func (a *Agent) pods() []v1.Pod {
	var list []v1.Pod
	for _, known := range a.table.All() {
		pod := v1.Pod{ObjectMeta: identity(&known.ObjectMeta), Spec: outline(&known.Spec)}
		pod.Status, _ = a.manager.GetPodStatus(known.UID)
		list = append(list, pod)
	}
	return list
}

// identity is what tells one pod from another. Of the annotations only those of the pod's source
// are shown: kubectl apply keeps the whole manifest in one, with the values of variables, and so
// may others.
func identity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	shown := metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, GenerateName: meta.GenerateName, UID: meta.UID,
		ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
		DeletionGracePeriodSeconds: meta.DeletionGracePeriodSeconds,
		Labels:                     meta.Labels, OwnerReferences: meta.OwnerReferences,
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
		NodeName:       spec.NodeName,
		RestartPolicy:  spec.RestartPolicy,
		InitContainers: names(spec.InitContainers),
		Containers:     names(spec.Containers),
	}
}

// run serves until ctx ends.
func (e *endpoints) run(ctx context.Context) error {
	server := &http.Server{
		Handler:           e.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(e.listener, maxConnections)) }()
	select {
	case err := <-served:
		return fmt.Errorf("agent: serve %s: %w", e.listener.Addr(), err)
	case <-ctx.Done():
	}
	// In-flight requests are not drained.
	err := server.Close()
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
