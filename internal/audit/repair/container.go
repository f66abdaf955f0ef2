package repair

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/statusd/statusd/internal/audit"
)

// removeContainers stops and removes the containers of a pod that does not exist, by their IDs: a pod of
// the same name that exists has others.
func (r *Repairer) removeContainers(ctx context.Context, s Step, f audit.Facts) (string, error) {
	if !f.KubeletAnswer.Known() {
		if err := r.kubeletDead(s, f); err != nil {
			return "", err
		}
	}
	if err := r.podIsGone(ctx, s); err != nil {
		return "", err
	}
	running := containersOf(f, s)
	names := make([]string, len(running))
	for i, c := range running {
		names[i] = fmt.Sprintf("%q", c.Name)
	}
	did := fmt.Sprintf("Stopped and removed %s of a pod that does not exist (UID %s)", strings.Join(names, ", "), s.Pod.UID)
	if s.DryRun {
		return did, nil
	}
	for _, c := range running {
		if err := r.o.Runtime.Stop(ctx, c.ID, r.o.Grace); err != nil {
			return "", fmt.Errorf("stop container %s (%s): %w", c.Name, c.ID, err)
		}
		if err := r.o.Runtime.Remove(ctx, c.ID); err != nil {
			return "", fmt.Errorf("remove container %s (%s): %w", c.Name, c.ID, err)
		}
	}
	return did, nil
}

// podIsGone queries the API server itself in two ways: a list of the node's pods, and the pod by name. One
// request alone could be wrong: a pod may be bound to the node between two lists, and a cache may be
// behind.
func (r *Repairer) podIsGone(ctx context.Context, s Step) error {
	pods, err := r.o.API.List(ctx)
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range pods {
		if pods[i].UID == s.Pod.UID || pods[i].Annotations[v1.MirrorPodAnnotationKey] == string(s.Pod.UID) {
			return skip("the API has the pod")
		}
	}
	pod, err := r.o.API.Get(ctx, s.Pod.Namespace, s.Pod.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get pod: %w", err)
	case pod.UID == s.Pod.UID:
		return skip("the API has the pod")
	}
	return nil
}

func containersOf(f audit.Facts, s Step) []audit.Container {
	var list []audit.Container
	for _, c := range f.Containers {
		if c.UID == s.Pod.UID && c.State == audit.ContainerRunning {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b audit.Container) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list
}
