package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podapi"
	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/podstatus"
)

// reconcile takes one step for a pair and decides when the next one is due.
func (m *Mirrors) reconcile(ctx context.Context, name string) {
	m.mu.Lock()
	p := m.pairs[name]
	static, mirror, gone := p.static, p.mirror, p.gone
	p.due = time.Time{} // an Observe in the meantime sets it again
	isRight := mirror == nil && static == nil || mirror != nil && podrules.IsMirrorOf(mirror, static)
	if next := p.next(); !isRight && next.After(time.Now()) {
		p.due = next
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	result, err := m.step(ctx, static, mirror, gone)

	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		result(p)
		p.attempt, p.err = 0, nil
		switch over := p.acted.Add(calm); {
		case p.static != nil || p.mirror != nil || !p.due.IsZero():
		case !over.After(time.Now()):
			delete(m.pairs, name)
		default:
			p.due = over // until then it is known how often it was deleted
		}
		return
	}
	p.err = err
	if errors.Is(err, errNotRegistered) {
		p.due = time.Now().Add(waitRetry) // not a failure: no backoff
		return
	}
	p.attempt++
	p.due = time.Now().Add(retrySchedule.Random(p.attempt))
	m.log.Warn("mirror pod update failed, retrying", "pod", name, "attempt", p.attempt, "err", err)
}

// step makes the next request that brings a mirror in line with its static pod, and returns
// how the answer changes the pair. Gone is the UID of the mirror that was deleted last.
func (m *Mirrors) step(ctx context.Context, static, mirror *v1.Pod, gone types.UID) (func(*pair), error) {
	switch {
	case mirror != nil && !podrules.IsMirrorOf(mirror, static):
		if shadowed := types.UID(mirror.Annotations[v1.MirrorPodAnnotationKey]); (static == nil || static.UID != shadowed) && m.inUse(shadowed) {
			return func(p *pair) { p.due = time.Now().Add(waitRetry) }, nil
		}
		if err := m.delete(ctx, mirror); err != nil {
			return nil, err
		}
		return func(p *pair) {
			p.gone = mirror.UID
			p.act(time.Now())
			if p.mirror != nil && p.mirror.UID == mirror.UID {
				p.mirror = nil
			}
			p.due = time.Now() // for the next step
		}, nil
	case mirror == nil && static != nil:
		created, isNew, err := m.create(ctx, static)
		if err != nil {
			return nil, err
		}
		if created.UID == gone { // a finalizer holds it
			return nil, fmt.Errorf("mirror: create pod: the mirror %s that was deleted is still there", gone)
		}
		return func(p *pair) {
			if isNew {
				p.act(time.Now())
			}
			switch {
			case p.mirror != nil: // the watch was faster
			case created.UID == p.gone: // the watch has shown its deletion: create another one
				p.due = time.Now().Add(waitRetry)
				return
			default:
				p.mirror = created
			}
			if !podrules.IsMirrorOf(p.mirror, static) {
				p.due = time.Now() // it shadows another static pod: replace it
			}
		}, nil
	}
	return func(*pair) {}, nil
}

// create creates the mirror, or returns the existing one, and reports which.
func (m *Mirrors) create(ctx context.Context, static *v1.Pod) (mirror *v1.Pod, isNew bool, err error) {
	uid := m.nodeUID()
	if uid == "" {
		return nil, false, errNotRegistered
	}
	pods := m.client.CoreV1().Pods(static.Namespace)
	created, err := pods.Create(ctx, podFor(static, m.node, uid), metav1.CreateOptions{})
	if err == nil && created.UID == "" {
		return nil, false, errors.New("mirror: create pod: the answer is not the pod: it has no UID")
	}
	if err == nil {
		m.log.Info("mirror pod created", "pod", key(static), "uid", created.UID)
		return created, true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, fmt.Errorf("mirror: create pod: %w", err)
	}
	found, err := pods.Get(ctx, static.Name, metav1.GetOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("mirror: get the pod that has the mirror's name: %w", err)
	}
	if !podstatus.IsMirror(found) || found.Spec.NodeName != m.node {
		return nil, false, fmt.Errorf("mirror: create pod: a pod %s that is not a mirror of this node is in the way; delete it or rename the static pod", key(static))
	}
	return found, false, nil
}

// delete deletes exactly this mirror, without a grace period: it has no containers of its own.
func (m *Mirrors) delete(ctx context.Context, mirror *v1.Pod) error {
	now := int64(0)
	err := m.client.CoreV1().Pods(mirror.Namespace).Delete(ctx, mirror.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      metav1.NewUIDPreconditions(string(mirror.UID)),
	})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// A conflict may be about the UID, or the word of a webhook.
		list := m.client.CoreV1().Pods(mirror.Namespace).List
		if notGone := podapi.ConfirmGone(ctx, m.node, mirror.Name, mirror.UID, list); notGone != nil {
			return fmt.Errorf("mirror: delete: %w: %w", err, notGone)
		}
	case err != nil:
		return fmt.Errorf("mirror: delete: %w", err)
	}
	m.log.Info("mirror pod deleted", "pod", key(mirror), "uid", mirror.UID)
	return nil
}

// podFor returns the mirror pod of a static pod: the same pod with the annotation, owned by
// the node. NodeRestriction admits exactly this shape.
func podFor(static *v1.Pod, node string, nodeUID types.UID) *v1.Pod {
	mirror := static.DeepCopy()
	mirror.UID = ""
	metav1.SetMetaDataAnnotation(&mirror.ObjectMeta, v1.MirrorPodAnnotationKey, static.Annotations[podstatus.HashAnnotation])
	controller := true
	mirror.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1",
		Kind:       "Node",
		Name:       node,
		UID:        nodeUID,
		Controller: &controller,
	}}
	return mirror
}
