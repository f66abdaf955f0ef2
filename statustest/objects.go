package statustest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/internal/wake"
)

// kind is a kind of object, besides pods, that the server stores.
type kind struct {
	group, version, resource, name string
	namespaced                     bool
	empty                          func() object
}

type object interface {
	runtime.Object
	metav1.Object
}

// kinds are what a node reads and writes besides its pods.
var kinds = []kind{
	{"", "v1", "nodes", "Node", false, func() object { return &v1.Node{} }},
	{"coordination.k8s.io", "v1", "leases", "Lease", true, func() object { return &coordination.Lease{} }},
	{"", "v1", "events", "Event", true, func() object { return &v1.Event{} }},
	{"", "v1", "configmaps", "ConfigMap", true, func() object { return &v1.ConfigMap{} }},
	{"", "v1", "secrets", "Secret", true, func() object { return &v1.Secret{} }},
	{"", "v1", "services", "Service", true, func() object { return &v1.Service{} }},
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.resource}
}

func (k *kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// collection is the stored objects of a kind. Server.mu guards it; a stored object is never modified.
type collection struct {
	objects map[string]object // by namespace/name
	history []objectEvent
	watches map[*objectWatcher]bool
}

type objectEvent struct {
	kind    watch.EventType
	object  object
	version int
}

// objectWatcher is a watch that is under way.
type objectWatcher struct {
	queue []objectEvent // guarded by Server.mu
	wake  chan struct{} // capacity 1: one signal stands for any number of events
}

// collection returns the stored objects of a kind. The caller holds mu.
func (s *Server) collection(k *kind) *collection {
	c := s.objects[k.resource]
	if c == nil {
		c = &collection{objects: make(map[string]object), watches: make(map[*objectWatcher]bool)}
		s.objects[k.resource] = c
	}
	return c
}

// publish records an event and delivers it. The caller holds Server.mu.
func (c *collection) publish(e objectEvent) {
	c.history = append(c.history, e)
	if surplus := len(c.history) - historyLimit; surplus > 0 {
		c.history = slices.Clone(c.history[surplus:])
	}
	for w := range c.watches {
		w.queue = append(w.queue, e)
		wake.Up(w.wake)
	}
}

// objectPath takes the path of a request for an object other than a pod apart.
func objectPath(path string) (k *kind, namespace, name, subresource string) {
	for i := range kinds {
		prefix := "/api/"
		if kinds[i].group != "" {
			prefix = "/apis/" + kinds[i].group + "/"
		}
		rest, ok := strings.CutPrefix(path, prefix+kinds[i].version+"/")
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		if parts[0] == "namespaces" && len(parts) >= 3 {
			namespace, parts = parts[1], parts[2:]
		}
		if parts[0] != kinds[i].resource || len(parts) > 3 {
			namespace = ""
			continue
		}
		parts = append(parts, "", "")
		return &kinds[i], namespace, parts[1], parts[2]
	}
	return nil, "", "", ""
}

// serveObject serves a request for an object other than a pod: list, watch, get, create, update, patch, delete.
func (s *Server) serveObject(w http.ResponseWriter, r *http.Request, k *kind, namespace, name, subresource string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	watching := name == "" && r.URL.Query().Get("watch") != ""
	verb := map[string]string{http.MethodGet: "GET", http.MethodPost: "CREATE", http.MethodPut: "UPDATE", http.MethodPatch: "PATCH", http.MethodDelete: "DELETE"}[r.Method]
	switch {
	case watching:
		verb = "WATCH"
	case name == "" && verb == "GET":
		verb = "LIST"
	}
	request := Request{Verb: verb, Resource: k.resource, Body: string(body)}
	if name != "" {
		request.Name = strings.TrimPrefix(namespace+"/"+name, "/")
	}
	if watching {
		if err := s.decide(r.Context(), request); err != nil {
			writeError(w, err)
			return
		}
		s.watchObjects(w, r, k, namespace)
		return
	}
	end, err := s.begin(r.Context(), request)
	if err != nil {
		writeError(w, err)
		return
	}
	answer, err := s.handleObject(r, k, verb, namespace, name, subresource, body)
	if err := end(err); err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// decide records a request and applies the fault alone.
func (s *Server) decide(ctx context.Context, request Request) error {
	end, err := s.begin(ctx, request)
	if err != nil {
		return err
	}
	return end(nil)
}

func (s *Server) handleObject(r *http.Request, k *kind, verb, namespace, name, subresource string, body []byte) (any, error) {
	switch verb {
	case "LIST":
		return s.listObjects(r, k, namespace)
	case "CREATE":
		created := k.empty()
		if err := decodeBody(body, created); err != nil {
			return nil, err
		}
		created.SetNamespace(namespace)
		return s.writeObject(k, namespace, created.GetName(), func(before object) (object, error) {
			if before != nil {
				return nil, apierrors.NewAlreadyExists(k.groupResource(), created.GetName())
			}
			return created, nil
		})
	case "GET":
		s.mu.Lock()
		defer s.mu.Unlock()
		if found := s.collection(k).objects[namespace+"/"+name]; found != nil {
			return k.typed(found), nil
		}
		return nil, apierrors.NewNotFound(k.groupResource(), name)
	case "UPDATE":
		updated := k.empty()
		if err := decodeBody(body, updated); err != nil {
			return nil, err
		}
		return s.writeObject(k, namespace, name, func(before object) (object, error) {
			if before == nil {
				return nil, apierrors.NewNotFound(k.groupResource(), name)
			}
			if version := updated.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
				return nil, apierrors.NewConflict(k.groupResource(), name, errors.New("the object has been modified"))
			}
			return updated, nil
		})
	case "PATCH":
		return s.writeObject(k, namespace, name, func(before object) (object, error) {
			if before == nil {
				return nil, apierrors.NewNotFound(k.groupResource(), name)
			}
			after := k.empty()
			if err := patchObject(r.Header.Get("Content-Type"), before, after, body); err != nil {
				return nil, err
			}
			if after.GetUID() != before.GetUID() {
				return nil, apierrors.NewConflict(k.groupResource(), name, errors.New("precondition failed: UID"))
			}
			if after.GetResourceVersion() != before.GetResourceVersion() {
				return nil, apierrors.NewConflict(k.groupResource(), name, errors.New("the object has been modified"))
			}
			separate(before, after, subresource)
			return after, nil
		})
	case "DELETE":
		return s.deleteObject(k, namespace, name)
	}
	return nil, apierrors.NewMethodNotSupported(k.groupResource(), r.Method)
}

// separate keeps what a write to the other part must not change: the status of a Node has a subresource of its own.
func separate(before, after object, subresource string) {
	old, isNode := before.(*v1.Node)
	changed, _ := after.(*v1.Node)
	switch {
	case isNode && subresource == "status":
		changed.Spec = *old.Spec.DeepCopy()
	case isNode:
		changed.Status = *old.Status.DeepCopy()
	}
}

// patchObject applies a strategic merge patch, or a merge patch (RFC 7386).
func patchObject(contentType string, before, after object, patch []byte) error {
	original, err := json.Marshal(before)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	var patched []byte
	switch types.PatchType(contentType) {
	case types.StrategicMergePatchType:
		patched, err = strategicpatch.StrategicMergePatch(original, patch, after)
	case types.MergePatchType:
		var document, changes any
		if err = errors.Join(json.Unmarshal(original, &document), json.Unmarshal(patch, &changes)); err == nil {
			patched, err = json.Marshal(mergePatch(document, changes))
		}
	default:
		return apierrors.NewBadRequest("the server does not apply patches of type " + contentType)
	}
	if err == nil {
		err = json.Unmarshal(patched, after)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func mergePatch(document, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, ok := document.(map[string]any)
	if !ok {
		merged = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(merged, key)
		} else {
			merged[key] = mergePatch(merged[key], value)
		}
	}
	return merged
}

// writeObject stores the result of change, which is called with the stored object, or nil.
func (s *Server) writeObject(k *kind, namespace, name string, change func(before object) (object, error)) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(k)
	key := namespace + "/" + name
	before := c.objects[key]
	var shown object
	if before != nil {
		shown = before.DeepCopyObject().(object)
	}
	after, err := change(shown)
	if err != nil {
		return nil, err
	}
	after = after.DeepCopyObject().(object)
	if before == nil {
		after.SetUID(uuid.NewUUID())
		after.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	} else {
		after.SetUID(before.GetUID())
		after.SetCreationTimestamp(before.GetCreationTimestamp())
		after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	}
	s.version++
	after.SetResourceVersion(strconv.Itoa(s.version))
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		delete(c.objects, key)
		c.publish(objectEvent{watch.Deleted, after, s.version})
		return k.typed(after), nil
	}
	c.objects[key] = after
	what := watch.Added
	if before != nil {
		what = watch.Modified
	}
	c.publish(objectEvent{what, after, s.version})
	return k.typed(after), nil
}

// deleteObject removes an object, or marks it as deleted while it has finalizers.
func (s *Server) deleteObject(k *kind, namespace, name string) (any, error) {
	s.mu.Lock()
	found := s.collection(k).objects[namespace+"/"+name]
	s.mu.Unlock()
	if found == nil {
		return nil, apierrors.NewNotFound(k.groupResource(), name)
	}
	if len(found.GetFinalizers()) > 0 {
		return s.markObject(k, namespace, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(k)
	delete(c.objects, namespace+"/"+name)
	s.version++
	gone := found.DeepCopyObject().(object)
	gone.SetResourceVersion(strconv.Itoa(s.version))
	c.publish(objectEvent{watch.Deleted, gone, s.version})
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
}

func (s *Server) markObject(k *kind, namespace, name string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(k)
	found := c.objects[namespace+"/"+name]
	if found == nil {
		return nil, apierrors.NewNotFound(k.groupResource(), name)
	}
	marked := found.DeepCopyObject().(object)
	if marked.GetDeletionTimestamp() == nil {
		now := metav1.Now().Rfc3339Copy()
		marked.SetDeletionTimestamp(&now)
	}
	s.version++
	marked.SetResourceVersion(strconv.Itoa(s.version))
	c.objects[namespace+"/"+name] = marked
	c.publish(objectEvent{watch.Modified, marked, s.version})
	return k.typed(marked), nil
}

// typed returns a copy of the object with its kind, as it is sent.
func (k *kind) typed(stored object) object {
	sent := stored.DeepCopyObject().(object)
	sent.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.name})
	return sent
}

// selectedObjects returns a filter for the namespace and the selectors of a request.
func selectedObjects(r *http.Request, namespace string) (func(object) bool, error) {
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o object) bool {
		return (namespace == "" || o.GetNamespace() == namespace) && byLabel.Matches(labels.Set(o.GetLabels())) &&
			byField.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
	}, nil
}

func (s *Server) listObjects(r *http.Request, k *kind, namespace string) (any, error) {
	matches, err := selectedObjects(r, namespace)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []object{}
	stored := s.collection(k).objects
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		if matches(stored[key]) {
			items = append(items, k.typed(stored[key]))
		}
	}
	return map[string]any{
		"apiVersion": k.apiVersion(), "kind": k.name + "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	}, nil
}

// watchObjects streams the events after a resource version, as serveWatch does for pods.
func (s *Server) watchObjects(w http.ResponseWriter, r *http.Request, k *kind, namespace string) {
	matches, err := selectedObjects(r, namespace)
	if err != nil {
		writeError(w, err)
		return
	}
	query := r.URL.Query()
	since, err := strconv.Atoi(query.Get("resourceVersion"))
	initial := query.Get("sendInitialEvents") == "true" || err != nil || since == 0

	s.mu.Lock()
	c := s.collection(k)
	if !initial && len(c.history) == historyLimit && since < c.history[0].version {
		s.mu.Unlock()
		writeError(w, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	watcher := &objectWatcher{wake: make(chan struct{}, 1)}
	c.watches[watcher] = true
	stored, version, history := maps.Clone(c.objects), s.version, slices.Clone(c.history)
	s.mu.Unlock()
	defer s.set(func() { delete(c.watches, watcher) })

	w.Header().Set("Content-Type", "application/json")
	stream := json.NewEncoder(w)
	send := func(e objectEvent) error {
		if e.kind != watch.Bookmark && !matches(e.object) {
			return nil
		}
		return stream.Encode(wireEvent{e.kind, k.typed(e.object)})
	}
	if initial {
		for _, key := range slices.Sorted(maps.Keys(stored)) {
			_ = send(objectEvent{kind: watch.Added, object: stored[key]})
		}
		if query.Get("sendInitialEvents") == "true" {
			mark := k.empty()
			mark.SetResourceVersion(strconv.Itoa(version))
			mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
			_ = send(objectEvent{kind: watch.Bookmark, object: mark})
		}
	} else {
		for _, e := range history {
			if e.version > since {
				_ = send(e)
			}
		}
	}
	flush := http.NewResponseController(w)
	for flush.Flush() == nil {
		e, ok := s.nextObject(r.Context(), watcher)
		if !ok || send(e) != nil {
			return
		}
	}
}

// nextObject waits for an event. nextObject returns false if the context has ended.
func (s *Server) nextObject(ctx context.Context, w *objectWatcher) (objectEvent, bool) {
	for {
		s.mu.Lock()
		if len(w.queue) > 0 {
			e := w.queue[0]
			w.queue = w.queue[1:]
			s.mu.Unlock()
			return e, true
		}
		s.mu.Unlock()
		select {
		case <-w.wake:
		case <-ctx.Done():
			return objectEvent{}, false
		}
	}
}

func decodeBody(body []byte, into runtime.Object) error {
	if err := decodeInto(body, into); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is not what the path says: %v", err))
	}
	return nil
}
