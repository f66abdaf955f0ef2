package statustest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var podResource = schema.GroupResource{Resource: "pods"}

// List returns the pods of the node.
func (s *Server) List(ctx context.Context) ([]v1.Pod, error) {
	return s.list(ctx, func(*v1.Pod) bool { return true })
}

// list returns the pods of the node that match.
func (s *Server) list(ctx context.Context, matches func(*v1.Pod) bool) ([]v1.Pod, error) {
	end, err := s.begin(ctx, Request{Verb: "LIST"})
	if err != nil {
		return nil, err
	}
	var list []v1.Pod
	s.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if pod := s.pods[name]; (s.node == "" || s.node == pod.Spec.NodeName) && matches(pod) {
			list = append(list, *pod.DeepCopy())
		}
	}
	s.mu.Unlock()
	if err := end(nil); err != nil {
		return nil, err
	}
	return list, nil
}

// Get returns a pod.
func (s *Server) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	end, err := s.begin(ctx, Request{Verb: "GET", Name: namespace + "/" + name})
	if err != nil {
		return nil, err
	}
	pod, err := s.find(namespace, name)
	if node := s.user(); node != "" && (err != nil || pod.Spec.NodeName != node) {
		pod, err = nil, DeniedByNodeAuthorizer(node, "get", namespace, name)
	}
	return answer(pod, end(err))
}

// PatchStatus applies a strategic merge patch to the status of a pod. Its metadata must have the
// pod's UID.
func (s *Server) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	var precondition struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
	}
	if err := json.Unmarshal(patch, &precondition); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patch is not JSON: %v: %s", err, patch))
	}
	serve := func() (*v1.Pod, error) {
		return s.patch(namespace, name, precondition.Metadata.UID, precondition.Metadata.ResourceVersion,
			func(pod *v1.Pod) (*v1.Pod, error) { return apply(pod, patch) })
	}
	end, err := s.begin(ctx, Request{Verb: "PATCH", Name: namespace + "/" + name, UID: precondition.Metadata.UID, Body: string(patch)})
	if err != nil {
		s.carryOut(err, func() { serve() })
		return nil, err
	}
	pod, err := serve()
	return answer(pod, end(err))
}

// Delete removes a pod at once, as a node does after the pod has ended. The UID is a precondition.
func (s *Server) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	end, err := s.begin(ctx, Request{Verb: "DELETE", Name: namespace + "/" + name, UID: uid})
	if err != nil {
		s.carryOut(err, func() { s.deleteNow(namespace, name, uid) })
		return err
	}
	return end(s.deleteNow(namespace, name, uid))
}

// deleteNow removes a pod if it has the UID and the user may delete it.
func (s *Server) deleteNow(namespace, name string, uid types.UID) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	pod, err := s.find(namespace, name)
	if err != nil {
		return err
	}
	if node := s.user(); node != "" && pod.Spec.NodeName != node {
		return BoundElsewhere(node, "delete pods", name)
	}
	if pod.UID != uid {
		return differentUID(name)
	}
	s.deleteGracefully(pod, 0)
	return nil
}

func differentUID(name string) error {
	return apierrors.NewConflict(podResource, name, errors.New("precondition failed: UID"))
}

func answer(pod *v1.Pod, err error) (*v1.Pod, error) {
	if err != nil {
		return nil, err
	}
	return pod, nil
}

func (s *Server) user() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

func (s *Server) find(namespace, name string) (*v1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, ok := s.pods[namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(podResource, name)
	}
	return pod.DeepCopy(), nil
}

// Client is a client of a [Server] with the optional methods of a real client: it also finds single
// pods in storage, sends JSON patches, and returns the newest resource version.
type Client struct{ *Server }

// Client returns a client with all methods that a status manager uses.
func (s *Server) Client() Client { return Client{s} }

// FindPod returns the stored pod of this name if it belongs to the node, or nil. It is recorded as
// LIST.
func (c Client) FindPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	found, err := c.list(ctx, func(pod *v1.Pod) bool { return pod.Namespace == namespace && pod.Name == name })
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// JSONPatchStatus applies a JSON patch to the status of a pod. It is recorded as PATCH.
func (c Client) JSONPatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	var operations []operation
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a JSON patch: %v: %s", err, patch))
	}
	serve := func() (*v1.Pod, error) {
		return c.patch(namespace, name, "", "", func(pod *v1.Pod) (*v1.Pod, error) { return applyOperations(pod, operations) })
	}
	end, err := c.begin(ctx, Request{Verb: "PATCH", Name: namespace + "/" + name, UID: testedUID(operations), Body: string(patch)})
	if err != nil {
		c.carryOut(err, func() { serve() })
		return nil, err
	}
	pod, err := serve()
	return answer(pod, end(err))
}

// ResourceVersion returns the newest resource version. It is recorded as VERSION.
func (c Client) ResourceVersion(ctx context.Context) (string, error) {
	end, err := c.begin(ctx, Request{Verb: "VERSION"})
	if err != nil {
		return "", err
	}
	if err := end(nil); err != nil {
		return "", err
	}
	return strconv.Itoa(c.Version()), nil
}

// Version returns the newest resource version.
func (s *Server) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}
