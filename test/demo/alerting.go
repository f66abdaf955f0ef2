package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/statusd/statusd/internal/alert/endpoint"
	"github.com/statusd/statusd/internal/runtimefake"
	"github.com/statusd/statusd/test/alertmanagertest"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/child"
)

// The rule that both evaluate: a container was restarted.
const (
	alertingRule = `apiVersion: statusd/v1alpha1
kind: Rules
groups: [{name: measured, rules: [{name: Restarted, expr: pod.restarts > 0, severity: warning}]}]
`
	alertingPrometheusRule = `groups: [{name: measured, rules: [{alert: Restarted, expr: kube_pod_container_status_restarts_total > 0, labels: {severity: warning}}]}]
`
	alertingPrometheus = `global: {scrape_interval: 15s, evaluation_interval: 15s}
rule_files: [rules.yaml]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
scrape_configs: [{job_name: kube-state-metrics, static_configs: [{targets: [%q]}]}]
`
)

// alerting measures the time from the end of a container until Alertmanager has the alert: on a node of this process with 500
// pods of a fake runtime, 20 of them ending per second, with the starter pack in force beside the measured rule. An alert has
// arrived when a proxy in front of the real Alertmanager has seen the answer 200 to its request. In the same run Prometheus,
// which scrapes and evaluates every 15 s, evaluates the same rule over a metric like kube-state-metrics', which this process
// serves without a delay.
func (d *demo) alerting(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "statusd-alerting-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	manager, err := alertmanagertest.Start(dir, alertmanagertest.Config("http://127.0.0.1:1/")) // its notifications go nowhere
	if err != nil {
		return err
	}
	defer manager.Kill()
	m := &alertMeter{lagMeter: lagMeter{rt: runtimefake.New()}, ends: map[string]time.Time{}}
	ours, theirs := m.proxy(manager.URL), m.proxy(manager.URL)
	metrics := httptest.NewServer(http.HandlerFunc(m.metrics))
	defer closeAll(ours.Server, theirs.Server, metrics)
	prometheus, err := startPrometheus(dir, theirs.Listener.Addr(), metrics.Listener.Addr())
	if err != nil {
		return err
	}
	defer prometheus()

	config, err := servingConfig(dir)
	if err != nil {
		return err
	}
	rules := filepath.Join(dir, "measured.yaml")
	if err := os.WriteFile(rules, []byte(alertingRule), 0o600); err != nil {
		return err
	}
	config.Rules.Pack, config.Rules.Files, config.Outputs.Alertmanagers = true, []string{rules}, []endpoint.Options{{URL: ours.URL}}
	stop, err := m.start(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	d.say("%d pods run; %d of their containers end each second, each once", servingPods, servingChanges)
	if err := m.endAll(ctx); err != nil {
		return err
	}
	for _, measured := range []struct {
		name string
		at   *arrivals
	}{{"statusd", ours}, {"prometheus, 15 s", theirs}} {
		if err := measured.at.await(ctx, servingPods); err != nil {
			return fmt.Errorf("%s: %w", measured.name, err)
		}
		d.say("%-18s from the end of a container to Alertmanager: %s", measured.name, m.latency(measured.at))
	}
	return nil
}

func closeAll(servers ...*httptest.Server) {
	for _, s := range servers {
		s.CloseClientConnections()
		s.Close()
	}
}

// alertMeter ends containers and notes when Alertmanager has the alert.
type alertMeter struct {
	lagMeter
	mu   sync.Mutex // guards ends
	ends map[string]time.Time
}

// endAll ends the container of each pod once.
func (m *alertMeter) endAll(ctx context.Context) error {
	all, err := m.rt.Pods(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(time.Second / servingChanges)
	defer ticker.Stop()
	for _, pod := range all {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		m.mu.Lock()
		m.ends[pod.Manifest.Name] = time.Now()
		m.mu.Unlock()
		m.rt.Exit(pod.Containers[0].ID, runtimefake.Exit{Code: 1})
	}
	return nil
}

// metrics are what kube-state-metrics shows of restarts.
func (m *alertMeter) metrics(w http.ResponseWriter, r *http.Request) {
	all, err := m.rt.Pods(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "# TYPE kube_pod_container_status_restarts_total counter")
	for _, pod := range all {
		restarts := 0
		for _, c := range pod.Containers {
			restarts = max(restarts, c.Attempt)
		}
		fmt.Fprintf(w, "kube_pod_container_status_restarts_total{namespace=%q,pod=%q,container=\"main\"} %d\n", pod.Manifest.Namespace, pod.Manifest.Name, restarts)
	}
}

func (m *alertMeter) latency(a *arrivals) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	var lags []time.Duration
	for pod, at := range a.at {
		lags = append(lags, at.Sub(m.ends[pod]))
	}
	return fmt.Sprintf("%s  (%d alerts)", campaign.Spread(lags), len(lags))
}

// arrivals is a proxy before Alertmanager that notes when it has taken the alert of a pod.
type arrivals struct {
	*httptest.Server
	mu      sync.Mutex // guards what follows
	at      map[string]time.Time
	changed chan struct{} // capacity 1
}

func (m *alertMeter) proxy(manager string) *arrivals {
	a := &arrivals{at: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := http.Post(manager+"/api/v2/alerts", "application/json", bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		if answer.StatusCode == http.StatusOK {
			a.note(body, time.Now())
		}
		w.WriteHeader(answer.StatusCode)
	}))
	return a
}

func (a *arrivals) note(body []byte, now time.Time) {
	var alerts []struct{ Labels map[string]string }
	if json.Unmarshal(body, &alerts) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, alert := range alerts {
		if _, known := a.at[alert.Labels["pod"]]; !known && alert.Labels["alertname"] == "Restarted" {
			name := alert.Labels["pod"]
			a.at[name] = now
		}
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// await waits for the alerts of so many pods.
func (a *arrivals) await(ctx context.Context, want int) error {
	for {
		a.mu.Lock()
		got := len(a.at)
		a.mu.Unlock()
		if got >= want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d alerts have arrived: %w", got, want, ctx.Err())
		case <-a.changed:
		}
	}
}

// startPrometheus runs Debian's Prometheus until the returned function is called.
func startPrometheus(dir string, manager, metrics net.Addr) (stop func(), err error) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		return nil, errors.New("prometheus is missing; it is in Debian's package of that name: apt-get install prometheus")
	}
	for name, content := range map[string]string{"rules.yaml": alertingPrometheusRule, "prometheus.yml": fmt.Sprintf(alertingPrometheus, manager, metrics)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address=127.0.0.1:0")
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	return process.Kill, nil
}
