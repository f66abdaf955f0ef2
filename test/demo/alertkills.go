package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/test/campaign"
)

// The rule of the kills: an alert for each pod that runs.
const killRule = `apiVersion: statusd/v1alpha1
kind: Rules
groups: [{name: kills, rules: [{name: Runs, expr: pod.phase == "Running", severity: warning}]}]
`

// killDelay is within which time after a change statusd is killed: before it has seen the change, while it
// starts the container, evaluates, writes or sends, or after all that.
const killDelay = 400 * time.Millisecond

// alertingKills lets a pod come and go, each time with a kill -9 of statusd at some moment, and looks whether the
// alert reached the receiver, and its end. The receiver has the API of Alertmanager.
func (d *demo) alertingKills(ctx context.Context, kills int, seed uint64) (err error) {
	dir, err := filepath.Abs(filepath.Join(d.state, "alerting-kills"))
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "manifests"), 0o755)); err != nil {
		return err
	}
	sink := newStateSink()
	server := httptest.NewServer(sink)
	defer closeAll(server)
	config, err := d.config("alerting-kills/node")
	if err != nil {
		return err
	}
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte(killRule), 0o644); err != nil {
		return err
	}
	config.Manifests, config.HealthzBindAddress = filepath.Join(dir, "manifests"), ""
	config.Rules.Files, config.Outputs.Alertmanagers = []string{rules}, []endpoint.Options{{URL: server.URL}}
	daemon, err := d.startStatusd(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopStatusd(ctx, daemon)) }()
	random := rand.New(rand.NewPCG(seed, 0))
	quiet := *d
	quiet.out = io.Discard
	killed := 0
	crash := func() error {
		if err := campaign.Pause(ctx, time.Duration(random.Int64N(int64(killDelay)))); err != nil {
			return err
		}
		if daemon.HasExited() {
			return daemon.failure()
		}
		daemon.Kill()
		killed++
		next, err := quiet.startStatusd(config)
		if err == nil {
			daemon = next
		}
		return err
	}
	for killed < kills {
		name := fmt.Sprintf("pod-%03d", killed)
		manifest := filepath.Join(config.Manifests, name+".yaml")
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: host, command: [sleep, \"1000000\"]}]}\n", name)
		if err := os.WriteFile(manifest, []byte(text), 0o644); err != nil {
			return err
		}
		if err := crash(); err != nil {
			return err
		}
		if err := sink.await(ctx, daemon, name+"-"+nodeName, firing); err != nil {
			return err
		}
		if err := os.Remove(manifest); err != nil {
			return err
		}
		if err := crash(); err != nil {
			return err
		}
		if err := sink.await(ctx, daemon, name+"-"+nodeName, resolved); err != nil {
			return err
		}
	}
	fired, left := sink.count()
	d.say("%d times kill -9: %d alerts fired and reached the receiver, %d of them are not resolved", killed, fired, left)
	if left > 0 {
		return errors.New("alerts were lost")
	}
	return nil
}

// The states of alerts that a sink knows.
const (
	firing   = "firing"
	resolved = "resolved"
)

// stateSink has the API of Alertmanager and keeps the newest state of the alert of each pod.
type stateSink struct {
	mu      sync.Mutex // guards what follows
	states  map[string]string
	fired   map[string]bool
	changed chan struct{} // closed and replaced with each request
}

func newStateSink() *stateSink {
	return &stateSink{states: map[string]string{}, fired: map[string]bool{}, changed: make(chan struct{})}
}

func (s *stateSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var alerts []struct {
		Labels map[string]string
		EndsAt time.Time
	}
	if err := json.NewDecoder(r.Body).Decode(&alerts); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, alert := range alerts {
		name := alert.Labels["pod"]
		if s.states[name] = firing; !alert.EndsAt.After(now) {
			s.states[name] = resolved
		} else {
			s.fired[name] = true
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until the alert of a pod has a state.
func (s *stateSink) await(ctx context.Context, d *daemon, pod, state string) error {
	for {
		s.mu.Lock()
		is, changed := s.fired[pod] && s.states[pod] == state, s.changed
		s.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the alert of %s did not become %s: %w; see %s", pod, state, ctx.Err(), d.logFile)
		case <-d.Exited:
			return d.failure()
		case <-changed:
		}
	}
}

// count returns how many alerts have fired, and how many of them are not resolved.
func (s *stateSink) count() (fired, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.fired {
		fired++
		if s.states[name] != resolved {
			left++
		}
	}
	return fired, left
}
