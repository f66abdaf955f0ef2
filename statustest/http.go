package statustest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// ServeHTTP serves the pods under /api/v1 for client-go: list, watch, get, create, delete, and patch of the status or of the metadata; and Nodes, leases, events, config maps, secrets
// and services. With httptest.NewServer it serves a whole program: clientset, informers and status manager. Latency and faults apply as they do to the methods.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, name, subresource, ok := podPath(r.URL.Path)
	if k, namespace, name, subresource := objectPath(r.URL.Path); k != nil {
		s.serveObject(w, r, k, namespace, name, subresource)
		return
	}
	switch {
	case !ok:
		writeError(w, apierrors.NewNotFound(podResource, r.URL.Path))
	case name == "" && r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.serveWatch(w, r, namespace)
	case name == "" && r.Method == http.MethodGet:
		s.serveList(w, r, namespace)
	case name == "" && r.Method == http.MethodPost:
		s.serveCreate(w, r, namespace)
	case r.Method == http.MethodGet:
		pod, err := s.Get(r.Context(), namespace, name)
		writePod(w, pod, err)
	case r.Method == http.MethodPatch && subresource == "status":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		patch := s.PatchStatus
		if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
			patch = s.Client().JSONPatchStatus
		}
		pod, err := patch(r.Context(), namespace, name, body)
		writePod(w, pod, err)
	case r.Method == http.MethodPatch && subresource == "":
		s.servePatch(w, r, namespace, name)
	case r.Method == http.MethodDelete:
		s.serveDelete(w, r, namespace, name)
	default:
		writeError(w, apierrors.NewMethodNotSupported(podResource, r.Method))
	}
}

// podPath takes /api/v1/pods and /api/v1/namespaces/NAMESPACE/pods[/NAME[/SUBRESOURCE]] apart.
func podPath(path string) (namespace, name, subresource string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/api/v1/"), "/")
	if len(parts) == 1 {
		return "", "", "", parts[0] == "pods"
	}
	if parts[0] != "namespaces" || len(parts) < 3 || len(parts) > 5 || parts[2] != "pods" {
		return "", "", "", false
	}
	parts = append(parts, "", "")
	return parts[1], parts[3], parts[4], true
}

// selected returns a filter for the namespace and the field selector of a request.
func selected(r *http.Request, namespace string) (func(*v1.Pod) bool, error) {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(pod *v1.Pod) bool {
		return (namespace == "" || pod.Namespace == namespace) && selector.Matches(fields.Set{
			"metadata.name": pod.Name, "metadata.namespace": pod.Namespace,
			"spec.nodeName": pod.Spec.NodeName, "status.phase": string(pod.Status.Phase),
		})
	}, nil
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, namespace string) {
	matches, err := selected(r, namespace)
	if err != nil {
		writeError(w, err)
		return
	}
	version := s.Version() // before the list: a watch from here on misses nothing
	pods, err := s.list(r.Context(), matches)
	if err != nil {
		writeError(w, err)
		return
	}
	list := v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)},
		Items:    pods,
	}
	writeJSON(w, http.StatusOK, &list)
}

func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, namespace string) {
	pod := &v1.Pod{}
	if !decode(w, r, pod) {
		return
	}
	pod.Namespace = namespace
	pod.Generation, pod.Status = 1, v1.PodStatus{Phase: v1.PodPending}
	created, err := s.create(pod)
	writePod(w, created, err)
}

// create stores a pod unless one of its name is stored.
func (s *Server) create(pod *v1.Pod) (*v1.Pod, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.Pod(pod) != nil {
		return nil, apierrors.NewAlreadyExists(podResource, pod.Name)
	}
	return s.put(pod), nil
}

// servePatch serves the patch of another writer: it changes labels, annotations, owners and finalizers, and nothing else.
func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, namespace, name string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	pod, err := s.find(namespace, name)
	if err != nil {
		writeError(w, err)
		return
	}
	patched := &v1.Pod{}
	if err := patchObject(r.Header.Get("Content-Type"), pod, patched, body); err != nil {
		writeError(w, err)
		return
	}
	if patched.UID != pod.UID {
		writeError(w, differentUID(name))
		return
	}
	pod.Labels, pod.Annotations, pod.OwnerReferences, pod.Finalizers = patched.Labels, patched.Annotations, patched.OwnerReferences, patched.Finalizers
	writePod(w, s.put(pod), nil)
}

// serveDelete serves the delete of a user, and the delete of a node: without grace, and with a UID.
func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, namespace, name string) {
	options := &metav1.DeleteOptions{}
	if !decode(w, r, options) {
		return
	}
	pod, err := s.find(namespace, name)
	if err != nil {
		writeError(w, err)
		return
	}
	uid := pod.UID
	if options.Preconditions != nil && options.Preconditions.UID != nil {
		uid = *options.Preconditions.UID
	}
	switch grace := gracePeriod(pod, options); {
	case grace == 0:
		err = s.Delete(r.Context(), namespace, name, uid)
	case uid != pod.UID:
		err = differentUID(name)
	default:
		s.DeleteGracefully(namespace, name, grace)
	}
	writePod(w, pod, err)
}

func gracePeriod(pod *v1.Pod, options *metav1.DeleteOptions) int64 {
	switch {
	case options.GracePeriodSeconds != nil:
		return *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return v1.DefaultTerminationGracePeriodSeconds
}

// decode reads the body of a request, JSON or protobuf, and reports whether it could. Without a body
// the object stays as it is.
func decode(w http.ResponseWriter, r *http.Request, into runtime.Object) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = decodeInto(body, into)
	}
	if err != nil {
		writeError(w, apierrors.NewBadRequest(err.Error()))
	}
	return err == nil
}

// decodeInto reads an object, JSON or protobuf.
func decodeInto(body []byte, into runtime.Object) error {
	if len(body) == 0 {
		return nil
	}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	return err
}

func writePod(w http.ResponseWriter, pod *v1.Pod, err error) {
	if err != nil {
		writeError(w, err)
		return
	}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	writeJSON(w, http.StatusOK, pod)
}

// writeError answers with the Status of an API error. Any other error is one of the way to the
// server: the connection is closed.
func writeError(w http.ResponseWriter, err error) {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	answer := status.Status()
	answer.APIVersion, answer.Kind = "v1", "Status"
	if details := answer.Details; details != nil && details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	writeJSON(w, int(answer.Code), &answer)
}

func writeJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}
