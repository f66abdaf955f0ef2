package apiside

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/observe"
)

// podStore is where the reflector of pods stores.
type podStore struct{ side *Side }

func (p podStore) Add(obj any) error { return p.Update(obj) }

func (p podStore) Update(obj any) error {
	pod, err := asPod(obj)
	if err != nil {
		return err
	}
	s := p.side
	if s.put(pod) {
		s.options.Changed(pod.UID)
	}
	return nil
}

// put stores a pod. It reports whether that changed anything.
func (s *Side) put(pod *v1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.pods.hear(now)
	s.reached = max(s.reached, version(pod.ResourceVersion))
	if known, ok := s.podsByUID[pod.UID]; ok && known.Pod.ResourceVersion == pod.ResourceVersion {
		return false
	}
	s.own()
	s.podsByUID[pod.UID] = observe.Sighting{Pod: pod, At: now}
	return true
}

func (p podStore) Delete(obj any) error {
	pod, err := asPod(obj)
	if err != nil {
		return err
	}
	s := p.side
	s.mu.Lock()
	s.pods.hear(time.Now())
	s.reached = max(s.reached, version(pod.ResourceVersion))
	s.own()
	delete(s.podsByUID, pod.UID)
	s.mu.Unlock()
	s.options.Changed(pod.UID)
	return nil
}

// Replace takes over a list.
func (p podStore) Replace(objs []any, listVersion string) error {
	pods := make([]*v1.Pod, 0, len(objs))
	for _, obj := range objs {
		pod, err := asPod(obj)
		if err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	s := p.side
	s.mu.Lock()
	now := time.Now()
	next := make(map[types.UID]observe.Sighting, len(pods))
	var changed []types.UID
	for _, pod := range pods {
		known, ok := s.podsByUID[pod.UID]
		if !ok || known.Pod.ResourceVersion != pod.ResourceVersion {
			known = observe.Sighting{Pod: pod, At: now}
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
	defer s.mu.Unlock()
	s.pods.hear(time.Now())
	s.reached = max(s.reached, version(bookmark))
	return nil
}

// own makes sure that the map of pods is not one that was handed out. The caller holds the lock.
func (s *Side) own() {
	if s.shared || s.podsByUID == nil {
		s.podsByUID, s.shared = maps.Clone(s.podsByUID), false
	}
	if s.podsByUID == nil {
		s.podsByUID = map[types.UID]observe.Sighting{}
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

func asPod(obj any) (*v1.Pod, error) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return nil, fmt.Errorf("apiside: the API sent a %T instead of a pod", obj)
	}
	if pod.UID == "" {
		return nil, fmt.Errorf("apiside: the API sent a pod without a UID, %s/%s", pod.Namespace, pod.Name)
	}
	return pod, nil
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
	// stream is the one that is heard.
	stream func() *stream
	// set stores the object, nil if there is none, and reports whether that changed anything. It is
	// called with the side's lock.
	set func(obj any, now time.Time) bool
}

func (o objectStore) Add(obj any) error    { return o.store(obj, false) }
func (o objectStore) Update(obj any) error { return o.store(obj, false) }
func (o objectStore) Delete(any) error     { return o.store(nil, false) }
func (o objectStore) Resync() error        { return nil }

func (o objectStore) Replace(objs []any, _ string) error {
	if len(objs) == 0 {
		return o.store(nil, true)
	}
	return o.store(objs[0], true)
}

func (o objectStore) Bookmark(string) error {
	o.side.mu.Lock()
	defer o.side.mu.Unlock()
	o.stream().hear(time.Now())
	return nil
}

func (o objectStore) store(obj any, list bool) error {
	s := o.side
	s.mu.Lock()
	now := time.Now()
	changed := o.set(obj, now)
	recovered := false
	if list {
		recovered = o.stream().listed(now)
	} else {
		o.stream().hear(now)
	}
	s.mu.Unlock()
	if changed || recovered {
		s.options.Changed("")
	}
	return nil
}

// setNode and setLease store the copy that came, with the lock held.
func (s *Side) setNode(obj any, now time.Time) bool {
	node, _ := obj.(*v1.Node)
	if s.facts.NodeObject == nil && node == nil || s.facts.NodeObject != nil && node != nil && s.facts.NodeObject.ResourceVersion == node.ResourceVersion && s.facts.NodeObject.UID == node.UID {
		return false
	}
	s.facts.NodeObject, s.facts.NodeAt = node, now
	return true
}

func (s *Side) setLease(obj any, now time.Time) bool {
	lease, _ := obj.(*coordinationv1.Lease)
	if s.facts.Lease == nil && lease == nil || s.facts.Lease != nil && lease != nil && s.facts.Lease.ResourceVersion == lease.ResourceVersion && s.facts.Lease.UID == lease.UID {
		return false
	}
	s.facts.Lease, s.facts.LeaseAt = lease, now
	return true
}
