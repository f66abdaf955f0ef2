package apiside

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/podapi"
)

// Limits of the watchdog.
const (
	confirmLeast = 2 * time.Second // between two confirmations
	lag          = 2 * time.Second // how long after the answer of a list the watch may deliver the same
)

// retries is how soon a confirmation that failed is tried again.
var retries = backoff.Schedule{First: time.Second, Limit: 15 * time.Second}

// watchdog gives up watches that hang and confirms what the watch of pods has delivered, until ctx ends.
func (s *Side) watchdog(ctx context.Context) {
	failures, last := 0, time.Now()
	for {
		wait := min(s.options.Confirm-time.Since(last), s.options.Quiet/4)
		if failures > 0 {
			wait = retries.Random(failures)
		}
		timer := time.NewTimer(wait)
		asked := failures > 0
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.confirm:
			asked = true
		case <-timer.C:
		}
		timer.Stop()
		s.relistSilent()
		if !asked && time.Since(last) < s.options.Confirm {
			continue
		}
		failures++
		if s.check(ctx) {
			failures = 0
		}
		last = time.Now()
		if !backoff.Sleep(ctx, min(confirmLeast, s.options.Confirm)) {
			return
		}
	}
}

// errNoWatch: the server has answered all requests, and yet there is no watch.
var errNoWatch = errors.New("the watch has ended, and no other has begun")

// relistSilent lists the objects of silent watches again.
func (s *Side) relistSilent() {
	for _, st := range []*stream{s.pods, s.nodes, s.lease} {
		s.mu.Lock()
		silent := st.synced && !st.polls && time.Since(st.heard) >= s.options.Quiet
		hangs := st.open && (silent || st.unreadable)
		if hangs {
			s.log.Warn("a watch hangs or cannot be read, listing again", "what", st.what, "heard", st.heard)
			st.open, st.heard = false, time.Now()
			st.relist()
		}
		s.mu.Unlock()
		if silent && !hangs {
			st.doubt("watch", errNoWatch, true)
		}
	}
}

// check compares the versions of the pods in the API with the versions that the watch has delivered,
// and lists the pods again if the watch has missed a change. check reports whether the server has
// answered.
func (s *Side) check(ctx context.Context) bool {
	s.mu.Lock()
	open, before := s.pods.open && s.pods.synced, s.reached
	wentBack := s.reached < s.highest
	s.mu.Unlock()
	if !open {
		// The pods are being listed, or the watch begins again. If versions went back, the next check comes soon: the server may have
		// been restored.
		return !wentBack
	}
	asked := time.Now()
	versions, reached, err := s.versions(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.pods.doubt("confirm", err, false)
		}
		return false
	}
	s.noteRestore(reached)
	// A server whose versions have gone back was restored from a backup: the facts from the watch belong to
	// another history. Otherwise the answer may be newer than the watch.
	if reached < before || !s.confirms(versions, reached, asked) && backoff.Sleep(ctx, lag) && !s.confirms(versions, reached, asked) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Err() == nil {
			s.log.Warn("the watch of pods has missed something, listing again")
			s.pods.open = false
			s.pods.relist()
		}
	}
	return true
}

// noteRestore notes that the server was restored from a backup: a list of its newest state has a lower version than it has shown before. The first list after
// a restore may come before this one, from another server's cache, and proves nothing.
func (s *Side) noteRestore(reached uint64) {
	s.mu.Lock()
	s.highest = max(s.highest, s.reached)
	before := s.highest
	if reached < before {
		s.highest, s.restored = reached, time.Now()
	}
	s.mu.Unlock()
	if reached < before {
		s.log.Warn("the versions of the API server have gone back: it was restored from a backup", "version", reached, "before", before)
		s.options.Changed("")
	}
}

// versions asks for the resource versions of the pods, from the newest state of the server.
func (s *Side) versions(ctx context.Context) (map[types.UID]uint64, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	list, err := s.metadata.Resource(v1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{FieldSelector: podapi.OnNode(s.options.Node)})
	if err := podapi.Listed(list, err); err != nil {
		return nil, 0, err
	}
	versions := make(map[types.UID]uint64, len(list.Items))
	for i := range list.Items {
		versions[list.Items[i].UID] = version(list.Items[i].ResourceVersion)
	}
	return versions, version(list.ResourceVersion), nil
}

// confirms reports whether the watch has delivered all that a list shows, and notes it.
func (s *Side) confirms(versions map[types.UID]uint64, reached uint64, asked time.Time) bool {
	s.mu.Lock()
	complete := s.delivered(versions, reached)
	recovered := false
	if complete {
		s.confirmed = asked
		recovered = s.pods.hear(time.Now())
	}
	s.mu.Unlock()
	s.announce(recovered)
	return complete
}

// delivered reports whether the watch has delivered a list, or what came after it. The caller holds the lock.
func (s *Side) delivered(versions map[types.UID]uint64, reached uint64) bool {
	for uid, listed := range versions {
		known, ok := s.podsByUID[uid]
		if !ok && s.reached <= reached {
			return false
		}
		if v := versionOf(known); ok && v != listed && v <= reached {
			return false
		}
	}
	for uid, known := range s.podsByUID {
		if _, ok := versions[uid]; !ok && versionOf(known) <= reached {
			return false
		}
	}
	return true
}

func versionOf(known audit.Sighting) uint64 {
	if known.Pod == nil {
		return 0
	}
	return version(known.Pod.ResourceVersion)
}
