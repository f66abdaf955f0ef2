package fleet

import (
	"context"

	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
	"github.com/statusd/statusd/status"
)

// podClient is the interface of a client of status.NewClient.
type podClient interface {
	status.Client
	status.Finder
	status.JSONPatcher
	status.VersionReader
}

// router is the client of the manager: each request goes to the client of the pod's node.
type router struct{ f *Fleet }

// List returns the pods that the watches have delivered, after the first list of the shared watch. The manager lists before its first
// write, and while the watch is behind many pods: such a list spares no reads, but costs no request either.
func (r router) List(ctx context.Context) ([]v1.Pod, error) {
	if err := r.f.awaitPods(ctx); err != nil {
		return nil, err
	}
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	list := make([]v1.Pod, 0, len(r.f.pods))
	for _, pod := range r.f.pods {
		list = append(list, *pod)
	}
	return list, nil
}

func (r router) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	return r.to(namespace, name).Get(ctx, namespace, name)
}

func (r router) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	return r.to(namespace, name).PatchStatus(ctx, namespace, name, patch)
}

func (r router) JSONPatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	return r.to(namespace, name).JSONPatchStatus(ctx, namespace, name, patch)
}

func (r router) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	return r.to(namespace, name).Delete(ctx, namespace, name, uid)
}

// FindPod for a pod of an unknown node, as for a final status from the journal, needs a client that sees all pods.
func (r router) FindPod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	if node := r.f.nodeOf(namespace, name); node != nil {
		return node.client.FindPod(ctx, namespace, name)
	}
	if !r.f.seesAllPods() {
		return nil, fmt.Errorf("fleet: no node of the fleet has the pod %s/%s", namespace, name)
	}
	return r.f.findPod(ctx, namespace, name)
}

func (r router) ResourceVersion(ctx context.Context) (string, error) {
	return r.f.client.ResourceVersion(ctx)
}

func (r router) to(namespace, name string) podClient {
	if node := r.f.nodeOf(namespace, name); node != nil {
		return node.client
	}
	return r.f.client
}

// keeper is a journal that keeps pods that are missing in a list: they may belong to nodes that are added later. Records of pods are
// removed when the pods are proven gone.
type keeper struct{ status.Journal }

func (keeper) RetainPods(func(types.UID) bool) (int, error) { return 0, nil }

// endsKeeper is keeper for a journal that stores only final statuses.
type endsKeeper struct{ status.Ends }

func (j endsKeeper) RemovePod(uid types.UID) error {
	return j.SetFinal(uid, podstatus.Final{})
}

func (endsKeeper) RetainPods(func(types.UID) bool) (int, error) { return 0, nil }

func keeping(ends status.Ends) status.Ends {
	if whole, ok := ends.(status.Journal); ok {
		return keeper{whole}
	}
	if ends == nil {
		return nil
	}
	return endsKeeper{ends}
}
