package cri

import (
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// firstUser is where the users of pods with a user namespace of their own begin, far from those of machines and directories.
	firstUser = 1 << 30
	// usersPerPod is how many each of them has, as with the kubelet, and maxUserPods how many such pods there can be.
	usersPerPod = 1 << 16
	maxUserPods = 1 << 12
)

// assignUsers gives a pod that asks for a user namespace a range of users which no other pod has. The pod keeps the range for its life: its volumes
// have files of these users.
func (r *Runtime) assignUsers(p *pod, handler string) error {
	if p.manifest.Spec.HostUsers == nil || *p.manifest.Spec.HostUsers {
		return nil
	}
	if !r.cri.features(handler).GetUserNamespaces() {
		if handler != "" {
			return fmt.Errorf("can't set `spec.hostUsers: false`, RuntimeClass handler %q does not support user namespaces", handler)
		}
		return errors.New("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
	}
	given, err := r.giveUsers(p)
	if err != nil || !given {
		return err
	}
	return r.save(p)
}

// giveUsers reports whether the pod has a range from now on, and had none before.
func (r *Runtime) giveUsers(p *pod) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.firstUser != 0 {
		return false, nil
	}
	taken := map[uint32]bool{}
	for _, other := range r.pods {
		taken[other.firstUser] = true
	}
	for first := uint32(firstUser); first < firstUser+maxUserPods*usersPerPod; first += usersPerPod {
		if !taken[first] {
			p.firstUser = first
			return true, nil
		}
	}
	return false, fmt.Errorf("%d pods have user namespaces, there are no more users", maxUserPods)
}

// users are those of the pod's user namespace, nil for those of the node.
func (p *pod) users() *runtimeapi.UserNamespace {
	if p.firstUser == 0 {
		return nil
	}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: p.mapping(), Gids: p.mapping()}
}

// mapping is also that of volumes: their files belong to the users that the pod knows, whichever the node has for them.
func (p *pod) mapping() []*runtimeapi.IDMapping {
	if p.firstUser == 0 {
		return nil
	}
	return []*runtimeapi.IDMapping{{HostId: p.firstUser, ContainerId: 0, Length: usersPerPod}}
}
