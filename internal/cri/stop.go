package cri

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/statusd/statusd/internal/backoff"
	"github.com/statusd/statusd/internal/wake"
	"github.com/statusd/statusd/internal/wholefile"
	"github.com/statusd/statusd/runtime"
)

// stops are the containers that are being stopped.
type stops struct {
	running sync.WaitGroup
	mu      sync.Mutex // guards what follows
	byID    map[string]*stop
}

// stop is the stop of one container.
type stop struct {
	by     time.Time     // when it is killed; guarded by stops.mu
	sooner chan struct{} // of capacity 1: by has changed
}

func (s *stops) wait() { s.running.Wait() }

// killRetries are the pauses between tries to kill a container whose runtime does not answer.
var killRetries = backoff.Schedule{First: time.Second, Limit: 30 * time.Second}

// StopContainer implements [runtime.Runtime]. By when the container ends is on disk when it returns.
func (r *Runtime) StopContainer(_ context.Context, id string, grace time.Duration) error {
	c, state, err := r.lookup(id)
	if err != nil || state == runtime.Exited {
		return err
	}
	r.stop(c, time.Now().Add(max(0, grace)), grace > 0)
	return nil
}

// stop has a container end by a time, or sooner if that was asked for before.
func (r *Runtime) stop(c *container, by time.Time, graceful bool) {
	r.stops.mu.Lock()
	defer r.stops.mu.Unlock()
	if r.stops.byID == nil {
		r.stops.byID = map[string]*stop{}
	}
	s, begun := r.stops.byID[c.id]
	if begun && !by.Before(s.by) || r.life.Err() != nil {
		return
	}
	r.remember(c, by)
	if begun {
		s.by = by
		wake.Up(s.sooner)
		return
	}
	s = &stop{by: by, sooner: make(chan struct{}, 1)}
	r.stops.byID[c.id] = s
	r.stops.running.Go(func() {
		r.see(c, s, graceful)
		r.stops.mu.Lock()
		defer r.stops.mu.Unlock()
		delete(r.stops.byID, c.id)
	})
}

// remember writes down by when a container ends. A disk that takes no writes stops no stop.
func (r *Runtime) remember(c *container, by time.Time) {
	data, err := json.Marshal(stopRecord{By: by})
	if err == nil {
		err = wholefile.Replace(filepath.Join(c.dir, "stop.json"), data)
	}
	if err != nil {
		r.options.Logger.Warn("the time by which a container must end is not recorded", "uid", c.uid, "id", c.id, "err", err)
	}
}

// resumeStops goes on with the stops of an earlier statusd.
func (r *Runtime) resumeStops() {
	r.mu.Lock()
	var all []*container
	for _, p := range r.pods {
		for _, c := range p.containers {
			if c.view.State != runtime.Exited {
				all = append(all, c)
			}
		}
	}
	r.mu.Unlock()
	for _, c := range all {
		data, err := os.ReadFile(filepath.Join(c.dir, "stop.json"))
		var rec stopRecord
		if err == nil && json.Unmarshal(data, &rec) == nil && !rec.By.IsZero() {
			r.stop(c, rec.By, true)
		}
	}
}

// see sees a stop through: the signal, and the kill at its time.
func (r *Runtime) see(c *container, s *stop, graceful bool) {
	ctx, cancel := context.WithCancel(r.life)
	defer cancel()
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	if graceful {
		asking.Go(func() { r.askToEnd(ctx, c, s) })
	}
	for tries := 0; ; {
		r.stops.mu.Lock()
		due := time.Until(s.by)
		r.stops.mu.Unlock()
		if tries > 0 {
			due = max(due, killRetries.Wait(tries, 0))
		}
		timer := time.NewTimer(due)
		select {
		case <-r.life.Done():
			timer.Stop()
			return
		case <-c.ended:
			timer.Stop()
			return
		case <-s.sooner:
			timer.Stop()
			continue
		case <-timer.C:
		}
		tries++
		if err := r.stopNow(ctx, c, 0); err != nil && r.life.Err() == nil {
			r.options.Logger.Warn("killing a container failed, will retry", "uid", c.uid, "id", c.id, "err", err)
		}
	}
}

// askToEnd sends the signal that stops the container. The container runtime gets more time than there is, so that this process decides when
// the container is killed, to the millisecond and not to the second.
func (r *Runtime) askToEnd(ctx context.Context, c *container, s *stop) {
	if c.signal != "" { // containerd up to 2.1 does not honor it
		if err := r.signal(c, c.signal); err == nil {
			return
		}
	}
	r.stops.mu.Lock()
	seconds := int64(math.Ceil(time.Until(s.by).Seconds())) + 60
	r.stops.mu.Unlock()
	if err := r.stopNow(ctx, c, seconds); err != nil && ctx.Err() == nil {
		r.options.Logger.Warn("stopping a container failed, it is killed when its grace is over", "uid", c.uid, "id", c.id, "err", err)
	}
}

// stopNow asks the container runtime and waits for the end.
func (r *Runtime) stopNow(ctx context.Context, c *container, seconds int64) error {
	bounded, cancel := context.WithTimeout(ctx, r.options.Timeout+time.Duration(seconds)*time.Second)
	defer cancel()
	_, err := r.cri.StopContainer(bounded, &runtimeapi.StopContainerRequest{ContainerId: c.id, Timeout: seconds})
	if err != nil && !isGone(err) {
		return err
	}
	return r.refresh(bounded, c)
}
