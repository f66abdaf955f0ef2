package apiside

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
)

// podStore is where the reflector of pods stores.
type podStore struct{ side *Side }

func (p podStore) Add(obj any) error { return p.Update(obj) }

func (p podStore) Update(obj any) error {
	pod, err := p.pod(obj)
	if err != nil {
		return err
	}
	recovered, changed := p.side.put(pod)
	if changed {
		p.side.announce(recovered, pod.UID)
	} else {
		p.side.announce(recovered)
	}
	return nil
}

// put stores a pod. put reports whether the side did not answer before, and whether anything has changed.
func (s *Side) put(pod *v1.Pod) (recovered, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	recovered = s.pods.hear(now)
	s.reached = max(s.reached, version(pod.ResourceVersion))
	known, ok := s.podsByUID[pod.UID]
	if ok && known.Pod.ResourceVersion == pod.ResourceVersion || pod.Spec.NodeName != s.options.Node {
		return recovered, false // it is the same, or the server ignores the selector
	}
	s.own()
	s.podsByUID[pod.UID] = audit.Sighting{Pod: pod, At: now}
	return recovered, true
}

func (p podStore) Delete(obj any) error {
	pod, err := p.pod(obj)
	if err != nil {
		return err
	}
	s := p.side
	s.mu.Lock()
	recovered := s.pods.hear(time.Now())
	s.reached = max(s.reached, version(pod.ResourceVersion))
	s.own()
	delete(s.podsByUID, pod.UID)
	s.mu.Unlock()
	s.announce(recovered, pod.UID)
	return nil
}

// Replace takes over a list. For an unreadable list it returns no error, since the reflector would then leak
// its watch; the watchdog has the pods listed again.
func (p podStore) Replace(objs []any, listVersion string) error {
	pods := make([]*v1.Pod, 0, len(objs))
	s := p.side
	for _, obj := range objs {
		pod, err := p.pod(obj)
		if err != nil {
			return nil
		}
		if pod.Spec.NodeName == s.options.Node {
			pods = append(pods, pod)
		}
	}
	s.mu.Lock()
	now := time.Now()
	next := make(map[types.UID]audit.Sighting, len(pods))
	var changed []types.UID
	for _, pod := range pods {
		known, ok := s.podsByUID[pod.UID]
		if !ok || known.Pod.ResourceVersion != pod.ResourceVersion {
			known = audit.Sighting{Pod: pod, At: now}
			changed = append(changed, pod.UID)
		}
		next[pod.UID] = known
	}
	for uid := range s.podsByUID {
		if _, ok := next[uid]; !ok {
			changed = append(changed, uid)
		}
	}
	s.podsByUID, s.shared = next, false
	s.highest = max(s.highest, s.reached)
	s.reached = version(listVersion) // also if that is less than before: the server was restored
	recovered := s.pods.listed(now)
	s.mu.Unlock()
	s.announce(recovered, changed...)
	return nil
}

func (podStore) Resync() error { return nil }

// Bookmark notes that the server was heard.
func (p podStore) Bookmark(bookmark string) error {
	s := p.side
	s.mu.Lock()
	recovered := s.pods.hear(time.Now())
	s.reached = max(s.reached, version(bookmark))
	s.mu.Unlock()
	s.announce(recovered)
	return nil
}

// own makes sure that the map of pods is not shared with callers. The caller holds the lock.
func (s *Side) own() {
	if s.shared {
		s.podsByUID, s.shared = maps.Clone(s.podsByUID), false
	}
	if s.podsByUID == nil {
		s.podsByUID = map[types.UID]audit.Sighting{}
	}
}

// announce calls Changed outside the lock.
func (s *Side) announce(recovered bool, uids ...types.UID) {
	if recovered {
		s.log.Info("the API server answers")
		s.options.Changed("")
	}
	for _, uid := range uids {
		s.options.Changed(uid)
	}
}

// pod returns a received pod. A pod without an identity makes the answer incomplete.
func (p podStore) pod(obj any) (*v1.Pod, error) {
	pod, ok := obj.(*v1.Pod)
	var err error
	if !ok {
		err = fmt.Errorf("the server sent a %T instead of a pod", obj)
	} else if pod.UID == "" {
		err = fmt.Errorf("the server sent a pod without a UID, %s/%s", pod.Namespace, pod.Name)
	}
	if err != nil {
		p.side.mu.Lock()
		p.side.pods.unreadable = true
		p.side.mu.Unlock()
		p.side.pods.doubt("read", err, false)
	}
	return pod, err
}

// version reads a resource version; 0 if it is no number.
func version(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// objectStore is where the reflector of a single object stores.
type objectStore struct {
	side *Side
	// stream returns the stream that received the object.
	stream func() *stream
	// set stores the object (nil: absent) and reports whether the stored object changed. It is called
	// with the side's lock.
	set func(obj any, now time.Time) bool
}

func (o objectStore) Add(obj any) error    { return o.Update(obj) }
func (o objectStore) Update(obj any) error { return o.store(obj, obj, false) }
func (o objectStore) Delete(obj any) error { return o.store(obj, nil, false) }
func (o objectStore) Resync() error        { return nil }

func (o objectStore) Replace(objs []any, _ string) error {
	for _, obj := range objs {
		if o.side.named(obj) {
			return o.store(obj, obj, true)
		}
	}
	return o.store(nil, nil, true)
}

func (o objectStore) Bookmark(string) error {
	o.side.mu.Lock()
	recovered := o.stream().hear(time.Now())
	o.side.mu.Unlock()
	o.side.announce(recovered)
	return nil
}

// store stores the new state of an object.
func (o objectStore) store(obj, now any, list bool) error {
	s := o.side
	s.mu.Lock()
	at := time.Now()
	changed := (list || s.named(obj)) && o.set(now, at)
	var recovered bool
	if list {
		recovered = o.stream().listed(at)
	} else {
		recovered = o.stream().hear(at)
	}
	s.mu.Unlock()
	if changed || recovered {
		s.options.Changed("")
	}
	return nil
}

// named reports whether an object has the name of the node: a server might ignore the selector.
func (s *Side) named(obj any) bool {
	object, ok := obj.(metav1.Object)
	return ok && object.GetName() == s.options.Node
}

// setNode and setLease store the copy that came, with the lock held.
func (s *Side) setNode(obj any, now time.Time) bool {
	node, _ := obj.(*v1.Node)
	if known := s.facts.NodeObject; known == nil && node == nil ||
		known != nil && node != nil && known.UID == node.UID && known.ResourceVersion == node.ResourceVersion {
		return false
	}
	s.facts.NodeObject, s.facts.NodeAt = node, now
	return true
}

func (s *Side) setLease(obj any, now time.Time) bool {
	lease, _ := obj.(*coordinationv1.Lease)
	if known := s.facts.Lease; known == nil && lease == nil ||
		known != nil && lease != nil && known.UID == lease.UID && known.ResourceVersion == lease.ResourceVersion {
		return false
	}
	s.facts.Lease, s.facts.LeaseAt = lease, now
	return true
}
