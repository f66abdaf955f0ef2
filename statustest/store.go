package statustest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusd/statusd/podstatus"
)

// Put stores a pod unchanged, as its creator or any other writer does, and returns it with its
// resource version. A pod without a UID gets a UID and a creation time.
func (s *Server) Put(pod *v1.Pod) *v1.Pod {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.put(pod)
}

// put is Put for a caller that holds the lock writing.
func (s *Server) put(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	SetDefaults(&pod.Status)
	if pod.UID == "" {
		pod.UID, pod.CreationTimestamp = uuid.NewUUID(), metav1.Now().Rfc3339Copy()
	}
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = podstatus.QOSClass(pod) // the server computes it when a pod is created
	}
	before, err := s.find(pod.Namespace, pod.Name)
	stored := s.store(pod)
	if err == nil && before.UID == pod.UID && len(before.Finalizers) > 0 && mayGo(stored) {
		s.remove(pod.Namespace, pod.Name)
	}
	return stored
}

// mayGo reports whether a pod that was deleted has nothing left to wait for.
func mayGo(pod *v1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0 && len(pod.Finalizers) == 0
}

// Change modifies a stored pod as a second writer does, and returns it. The change is atomic: no other
// write happens while the function runs, so the function must not write to the server. Change panics
// if there is no pod with this namespace and name.
func (s *Server) Change(pod *v1.Pod, change func(*v1.Pod)) *v1.Pod {
	s.writing.Lock()
	defer s.writing.Unlock()
	stored, err := s.find(pod.Namespace, pod.Name)
	if err != nil {
		panic(fmt.Sprintf("statustest: change: %v", err))
	}
	change(stored)
	return s.put(stored)
}

// DeleteGracefully deletes a pod as a user does: the pod gets a deletion timestamp, and its node has the
// grace period in seconds to end the pod. A pod without a grace period, without a node, or in a terminal
// phase is removed at once; a pod with finalizers is removed when [Server.Change] or [Server.Put] has
// removed the finalizers. DeleteGracefully reports whether the pod existed.
func (s *Server) DeleteGracefully(namespace, name string, grace int64) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	pod, err := s.find(namespace, name)
	if err != nil {
		return false
	}
	s.deleteGracefully(pod, grace)
	return true
}

// deleteGracefully deletes a stored pod. The caller holds the lock writing.
func (s *Server) deleteGracefully(pod *v1.Pod, grace int64) {
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		grace = 0
	}
	if before := pod.DeletionGracePeriodSeconds; before == nil || *before > grace { // it is only ever shortened
		markDeleted(pod, grace)
		s.put(pod)
	}
	if mayGo(pod) {
		s.remove(pod.Namespace, pod.Name)
	}
}

// markDeleted sets the deletion timestamp. The first time is a new generation.
func markDeleted(pod *v1.Pod, grace int64) {
	if pod.DeletionTimestamp == nil && pod.Generation > 0 {
		pod.Generation++
	}
	end := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second)).Rfc3339Copy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
}

// Remove removes a stored pod, whatever its state, as a garbage collector of the API does.
func (s *Server) Remove(namespace, name string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.remove(namespace, name)
}

// remove is Remove for a caller that holds the lock writing.
func (s *Server) remove(namespace, name string) {
	s.mu.Lock()
	s.version++
	pod, removed := s.pods[namespace+"/"+name], s.removed
	delete(s.pods, namespace+"/"+name)
	if pod != nil {
		pod = pod.DeepCopy()
		pod.ResourceVersion = strconv.Itoa(s.version)
		s.publish(watch.Deleted, pod)
	}
	s.mu.Unlock()
	if pod != nil && removed != nil {
		removed(pod.DeepCopy())
	}
}

// store keeps a pod under a new resource version, unless nothing has changed: then the server writes
// nothing, and watches see nothing. The caller holds the lock writing.
func (s *Server) store(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	s.mu.Lock()
	name := pod.Namespace + "/" + pod.Name
	old, known := s.pods[name]
	if known {
		pod.ResourceVersion = old.ResourceVersion
		if equality.Semantic.DeepEqual(old, pod) {
			s.mu.Unlock()
			return pod
		}
	}
	s.version++
	pod.ResourceVersion = strconv.Itoa(s.version)
	s.pods[name] = pod
	what := watch.Added
	if known {
		what = watch.Modified
	}
	s.publish(what, pod)
	stored := s.stored
	s.mu.Unlock()
	if stored != nil {
		stored(pod.DeepCopy())
	}
	return pod.DeepCopy()
}

// Backup is a copy of everything that a server has stored.
type Backup struct {
	pods    map[string]*v1.Pod
	version int
}

// UID returns the UID of the pod with this namespace and name in the backup, or empty.
func (b Backup) UID(namespace, name string) types.UID {
	if pod := b.pods[namespace+"/"+name]; pod != nil {
		return pod.UID
	}
	return ""
}

// Backup returns a copy of the current storage.
func (s *Server) Backup() Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Backup{pods: maps.Clone(s.pods), version: s.version}
}

// Restore replaces the storage with a backup, which may come from another server. Resource versions go
// back and are assigned a second time. Watches start over with a list. [Server.OnStore] is called for
// the pods whose version has changed; the removed pods are returned.
func (s *Server) Restore(b Backup) (gone []*v1.Pod) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	before := s.pods
	s.pods, s.version = maps.Clone(b.pods), b.version
	s.history, s.forgotten = nil, b.version
	s.restores++
	stored := s.stored
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		if now, ok := b.pods[name]; !ok || now.UID != was.UID {
			gone = append(gone, was.DeepCopy())
			s.deliver(event{kind: watch.Deleted, pod: was, version: b.version})
		}
	}
	var news []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(b.pods)) {
		now := b.pods[name]
		if was, ok := before[name]; !ok || was.ResourceVersion != now.ResourceVersion {
			news = append(news, now)
			s.deliver(event{kind: watch.Modified, pod: now, version: b.version})
		}
	}
	s.mu.Unlock()
	for _, pod := range news {
		if stored != nil {
			stored(pod.DeepCopy())
		}
	}
	return gone
}
