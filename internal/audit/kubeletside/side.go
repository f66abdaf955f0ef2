package kubeletside

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/answer"
	"github.com/statusd/statusd/internal/audit/internal/pace"
	"github.com/statusd/statusd/internal/wake"
)

// Side collects a kubelet's facts. Make it with [New].
type Side struct {
	options Options
	log     *slog.Logger
	loop    *pace.Loop
	http    *httpClient   // nil without URL
	socket  *socketClient // nil without Socket

	mu     sync.Mutex // guards what follows
	record answer.Record
	own    bool // the statuses are the kubelet's own
	pods   map[types.UID]audit.Sighting
	shared bool // pods was handed out, and must be copied before a change
	// news are the changes that the watch has brought since the last list was asked for: when a pod came
	// or, with a nil pod, went.
	news map[types.UID]audit.Sighting
}

// New makes a side. New starts nothing and sends no request: see [Side.Run].
func New(o Options) (*Side, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("kubeletside: %w", err)
	}
	o.setDefaults()
	loop, err := pace.New(o.Pace, o.Least)
	if err != nil {
		return nil, fmt.Errorf("kubeletside: %w", err)
	}
	s := &Side{options: o, log: o.Logger.With("node", o.Node), loop: loop, record: answer.New(o.URL)}
	if o.URL != "" {
		s.http = newHTTPClient(o)
	}
	if o.Socket != "" {
		s.record.From(o.Socket)
		s.socket = newSocketClient(o)
	}
	return s, nil
}

// Facts returns the latest facts from the kubelet. Facts does not wait.
func (s *Side) Facts() audit.Kubelet {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = true
	return audit.Kubelet{KubeletAnswer: s.record.Answer(), KubeletPods: s.pods, KubeletStatuses: s.own}
}

// Refresh requests an early list. Refresh never blocks; requests before the next list are merged.
func (s *Side) Refresh() { s.loop.Refresh() }

// Run queries the kubelet until ctx ends, then returns nil. Run may be called once.
func (s *Side) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	if s.socket != nil {
		watching.Go(func() { s.watch(ctx) })
	}
	s.loop.Run(ctx, s.look)
	watching.Wait()
	if s.http != nil {
		s.http.close()
	}
	return nil
}

// list is a whole answer of a kubelet.
type list struct {
	from string
	pods []*v1.Pod
	own  bool // the statuses are the kubelet's own
	// fresh: it came over a new connection, so that the kubelet may be another process than before.
	fresh bool
}

// look asks the kubelet once.
func (s *Side) look(ctx context.Context) error {
	s.mu.Lock()
	s.news = map[types.UID]audit.Sighting{}
	s.mu.Unlock()
	asked := time.Now()
	answer, err := s.ask(ctx)
	if err == nil {
		err = check(answer.pods, s.options.Node)
	}
	if ctx.Err() != nil {
		return nil // the end of the side is no silence of the kubelet
	}
	if err != nil {
		s.failed(err)
		return err
	}
	s.listed(answer, asked)
	if answer.own {
		wake.Up(s.socket.answered)
	}
	return nil
}

// ask asks over the socket if there is one, else over HTTPS.
func (s *Side) ask(ctx context.Context) (list, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	if s.socket == nil {
		return s.http.list(ctx)
	}
	answer, err := s.socket.list(ctx)
	if s.http == nil || !notServed(err) {
		return answer, err
	}
	return s.http.list(ctx)
}

// check refuses an answer that contradicts itself or is that of another node.
func check(pods []*v1.Pod, node string) error {
	seen := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		switch {
		case pod.UID == "":
			return fmt.Errorf("the answer has a pod without a UID, %s/%s", pod.Namespace, pod.Name)
		case seen[pod.UID]:
			return fmt.Errorf("the answer has two pods with the UID %s", pod.UID)
		case pod.Spec.NodeName != "" && pod.Spec.NodeName != node:
			return fmt.Errorf("the kubelet of node %s answers instead of the kubelet of %s: check the address and the node's name", pod.Spec.NodeName, node)
		}
		seen[pod.UID] = true
	}
	return nil
}

// failed notes that the kubelet did not answer.
func (s *Side) failed(err error) {
	s.mu.Lock()
	news := s.record.Bad(time.Now(), err)
	s.mu.Unlock()
	if news {
		s.log.Warn("the kubelet does not answer, retrying", "err", err)
		s.options.Changed("")
	}
}

// listed takes over a whole answer.
func (s *Side) listed(l list, asked time.Time) {
	now := time.Now()
	s.mu.Lock()
	s.record.From(l.from)
	// A kubelet closes a connection that was not used for 90 s.
	if l.fresh && asked.Sub(s.record.Answer().At) < keptOpen {
		s.record.Gap(asked)
	}
	recovered := s.record.Good(asked)
	next := make(map[types.UID]audit.Sighting, len(l.pods))
	for _, pod := range l.pods {
		if known, ok := s.pods[pod.UID]; ok && s.own == l.own && known.Pod == pod {
			next[pod.UID] = known
		} else {
			next[pod.UID] = audit.Sighting{Pod: pod, At: now}
		}
	}
	// What the watch has brought since the list was asked for may be newer than the list.
	for uid, sighting := range s.news {
		if sighting.Pod == nil {
			delete(next, uid)
		} else {
			next[uid] = sighting
		}
	}
	changed := differences(s.pods, next)
	s.pods, s.own, s.shared = next, l.own, false
	s.mu.Unlock()

	if recovered {
		s.log.Info("the kubelet answers", "from", l.from, "pods", len(l.pods))
		s.options.Changed("")
	}
	for _, uid := range changed {
		s.options.Changed(uid)
	}
}

// keptOpen is for how long a connection that is not used stays open, unless the kubelet ends.
const keptOpen = time.Minute

// differences returns the pods that are not the same in two answers.
func differences(before, after map[types.UID]audit.Sighting) []types.UID {
	var changed []types.UID
	for uid, sighting := range after {
		if before[uid].Pod != sighting.Pod {
			changed = append(changed, uid)
		}
	}
	for uid := range before {
		if _, ok := after[uid]; !ok {
			changed = append(changed, uid)
		}
	}
	return changed
}

// put stores what the watch has brought; a nil pod is gone.
func (s *Side) put(uid types.UID, pod *v1.Pod) {
	now := time.Now()
	s.mu.Lock()
	if s.pods[uid].Pod == pod {
		s.mu.Unlock()
		return // as the list had it
	}
	if s.shared {
		s.pods, s.shared = maps.Clone(s.pods), false
	}
	if pod == nil {
		delete(s.pods, uid)
	} else {
		s.pods[uid] = audit.Sighting{Pod: pod, At: now}
	}
	s.news[uid] = audit.Sighting{Pod: pod, At: now}
	s.mu.Unlock()
	s.options.Changed(uid)
}
