package status

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podrules"
	"github.com/statusd/statusd/statustest"
)

// Each change that shares a request with a later one is counted once, also for pods that come
// after others have gone.
func TestCoalescedChangesAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run()
		for i := range 20 {
			pod := w.create("web", func(p *v1.Pod) { p.UID = types.UID(rune('a' + i)) })
			for k := range 5 {
				w.report(pod, running(pod, k%2 == 0))
			}
			w.manager.Forget(pod.UID)
			w.table.Remove(pod)
			w.api.Remove("ns", "web")
		}
		static, _ := w.createStatic("etcd")
		w.set(static, running(static, true))
		synctest.Wait()
		w.api.Remove("ns", "etcd")
		w.api.Put(mirrorOf(static, "mirror-2"))
		synctest.Wait()
		if got := w.counter("statusd_pod_status_coalesced_changes_total"); got != 0 {
			t.Errorf("%v changes counted as coalesced, each had a request of its own", got)
		}
		pod := w.create("burst")
		w.api.SetLatency(time.Second)
		for k := range 4 { // the first is under way when the others come
			w.set(pod, running(pod, k%2 == 0))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		if got := w.counter("statusd_pod_status_coalesced_changes_total"); got != 2 {
			t.Errorf("%v changes counted as coalesced, want 2", got)
		}
	})
}

// Looks at a pod that waits are no changes that needed no request.
func TestNoopsAreChangesThatNeededNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runningGate()
		w := newWorld(t, func(o *Options) { o.Safety = g })
		pod, same := w.create("web", restartNever), w.create("same")
		w.run()
		w.set(pod, ended(pod, 1))
		time.Sleep(10 * time.Minute)
		if got := w.counter("statusd_pod_status_noop_writes_total"); got != 0 {
			t.Errorf("%v counted while a phase is withheld", got)
		}
		w.set(same, running(same, true))
		synctest.Wait()
		w.manager.Forget(same.UID)
		w.set(same, running(same, true))
		synctest.Wait()
		if got := w.counter("statusd_pod_status_noop_writes_total"); got != 1 {
			t.Errorf("%v counted, want the change that the API knew already", got)
		}
	})
}

// Several virtual nodes in a process, or a manager that is made again, share a registry.
func TestManagersShareARegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		shares := func(o *Options) { o.Registerer = registry }
		first := newWorld(t, shares)
		second := newWorld(t, shares)
		first.registry, second.registry = registry, registry
		a, b := first.create("a"), second.create("b")
		first.run()
		second.run()
		first.set(a, running(a, true))
		second.set(b, running(b, true))
		synctest.Wait()
		if got := first.counter("statusd_pod_status_changes_total"); got != 2 {
			t.Errorf("%v changes counted, want those of both", got)
		}
		for _, w := range []*world{first, second} {
			w.api.SetFault(func(context.Context, statustest.Request) error { return statustest.ErrRefused })
		}
		first.set(a, running(a, false))
		second.set(b, running(b, false))
		synctest.Wait()
		if got := first.counter("statusd_pod_status_pending"); got != 2 {
			t.Errorf("%v pending, want those of both", got)
		}
		first.stop()
		if got := first.counter("statusd_pod_status_pending"); got != 1 {
			t.Errorf("%v pending after one has ended, want that of the other", got)
		}
		if err := registry.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_pod_status_changes_total", Help: "another"})); err == nil {
			t.Error("another metric of the same name was registered")
		}
	})
}

// Virtual nodes that share a registry are kept apart by a label.
func TestMetricsLabelsKeepManagersApart(t *testing.T) {
	registry := prometheus.NewRegistry()
	for i, node := range []string{"a", "b", "b"} {
		m, err := New(Options{Registerer: registry, MetricsLabels: prometheus.Labels{"node": node}})
		if err != nil {
			t.Fatal(err)
		}
		pod := newPod("web")
		m.ObservePod(pod)
		for k := range i + 1 {
			if _, err := m.SetPodStatus(pod, running(pod, k%2 == 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			node := ""
			for _, label := range metric.GetLabel() {
				if label.GetName() == "node" {
					node = label.GetValue()
				}
			}
			if node == "" {
				t.Errorf("%s has no label node", family.GetName())
			}
			if family.GetName() == "statusd_pod_status_changes_total" {
				got[node] = metric.GetCounter().GetValue()
			}
		}
	}
	if want := map[string]float64{"a": 1, "b": 5}; !maps.Equal(got, want) {
		t.Errorf("changes by node are %v, want %v", got, want)
	}
}

// A label that a metric has by itself, or that cannot be one, is an error, and no panic.
func TestBadMetricsLabelsAreAnError(t *testing.T) {
	for _, label := range []string{"verb", "reason", "", "a-\xff"} {
		if _, err := New(Options{Registerer: prometheus.NewRegistry(), MetricsLabels: prometheus.Labels{label: "x"}}); err == nil {
			t.Errorf("New took the label %q", label)
		}
	}
}

// A registry in which a name means something else is an error, and no panic.
func TestRegistryThatRefusesIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "statusd_pod_status_changes_total", Help: "another"}))
	w := newWorld(t)
	options := w.manager.opts
	options.Registerer = registry
	if _, err := New(options.Options); err == nil {
		t.Error("New took it")
	}
}

// What the server or a webhook says of itself must not make metrics without number.
func TestReasonsInMetricsAreBounded(t *testing.T) {
	for reason, want := range map[string]string{"Conflict": "Conflict", "I felt like it": "other", "": "unreachable"} {
		if got := reasonOf(statustest.DeniedByWebhook(http.StatusTeapot, v1Reason(reason))); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}

// The backend of a reporter has reasons and exit codes of its own, one for each job.
func TestTerminatedContainers_HaveBoundedLabels(t *testing.T) {
	m := newMetrics()
	for i := range 1000 {
		m.terminated(podrules.TerminatedContainer{Kind: "container", ExitCode: int32(1000 + i), Reason: fmt.Sprint("job ", i, " failed")})
	}
	m.terminated(podrules.TerminatedContainer{Kind: "container", ExitCode: 137, Reason: "OOMKilled"})
	series := make(chan prometheus.Metric, 2000)
	m.ended.Collect(series)
	if got := len(series); got != 2 {
		t.Errorf("there are %d series, want 2", got)
	}
}
