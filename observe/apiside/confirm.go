package apiside

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/podapi"
)

// Limits of the watchdog.
const (
	confirmLeast = 2 * time.Second // between two confirmations
	lag          = 2 * time.Second // how long after the answer of a list the watch may deliver the same
)

// watchdog gives up watches that hang and confirms what the watch of pods has delivered, until ctx ends.
func (s *Side) watchdog(ctx context.Context) {
	period := min(s.options.Confirm, s.options.Quiet/4)
	last := time.Now()
	for {
		timer := time.NewTimer(period)
		asked := false
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
		if asked || time.Since(last) >= s.options.Confirm {
			s.check(ctx)
			last = time.Now()
			if !backoff.Sleep(ctx, min(confirmLeast, s.options.Confirm)) {
				return
			}
		}
	}
}

// relistSilent lists again what was not heard of for too long.
func (s *Side) relistSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range []*stream{s.pods, s.nodes, s.lease} {
		if st.open && time.Since(st.heard) >= s.options.Quiet {
			s.log.Warn("nothing was heard on a watch, listing again", "what", st.what, "since", st.heard)
			st.open = false
			st.relist()
		}
	}
}

// check compares the versions of the pods in the API with those that the watch has delivered, and lists
// the pods again if it has missed one.
func (s *Side) check(ctx context.Context) {
	asked := time.Now()
	versions, reached, err := s.versions(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Info("the pods of the API could not be confirmed", "err", err)
		}
		return
	}
	if s.confirms(versions, reached, asked) {
		return
	}
	// The answer may be newer than what the watch has delivered so far.
	if backoff.Sleep(ctx, lag) && !s.confirms(versions, reached, asked) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pods.relist != nil {
			s.log.Warn("the watch of pods has missed something, listing again")
			s.pods.open = false
			s.pods.relist()
		}
	}
}

// versions asks for the resource versions of the pods, from the newest state of the server.
func (s *Side) versions(ctx context.Context) (map[types.UID]uint64, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	list, err := s.metadata.Resource(v1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{FieldSelector: podapi.OnNode(s.options.Node)})
	if err != nil {
		return nil, 0, err
	}
	versions := make(map[types.UID]uint64, len(list.Items))
	for i := range list.Items {
		versions[list.Items[i].UID] = version(list.Items[i].ResourceVersion)
	}
	return versions, version(list.ResourceVersion), nil
}

// confirms reports whether the watch has delivered all that a list shows, and notes it. A server whose
// versions have gone back was restored from a backup; what the watch has delivered is then of another history.
func (s *Side) confirms(versions map[types.UID]uint64, reached uint64, asked time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods.record.Answer().Err != "" {
		return true // it is being listed again already
	}
	if reached < s.reached && !s.pods.heard.After(asked) {
		return false
	}
	for uid, v := range versions {
		if known, ok := s.podsByUID[uid]; !ok && s.reached < reached || ok && version(known.Pod.ResourceVersion) < v {
			return false
		}
	}
	for uid, known := range s.podsByUID {
		if _, ok := versions[uid]; !ok && version(known.Pod.ResourceVersion) <= reached {
			return false
		}
	}
	s.confirmed = asked
	s.pods.hear(time.Now())
	return true
}
