package queryapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/machine/logs"
	"github.com/statusd/statusd/internal/queryapi"
	"github.com/statusd/statusd/internal/view"
)

// announce tells the watch that something about a pod, or the node, has changed.
func (n *fakeNode) announce(uid string) {
	n.mu.Lock()
	changed := n.changed
	n.mu.Unlock()
	changed(types.UID(uid))
}

// A difference that becomes drift changes the row of its pod and its detail; that a side has said the
// same once more changes neither.
func TestAWatchFollowsDifferences(t *testing.T) {
	audited := sampleAudit()
	bubble(t, func(o *queryapi.Options) { o.Audit = audited }, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		said := time.Now()
		untrue := func(p *view.Pod) {
			p.Facts.Untrue = []explain.Untruth{{Kind: "RunningWithoutContainer", Text: "main has ended", Evidence: []explain.Statement{{By: "the runtime", At: said, Text: "it has ended"}}}}
		}
		node.set(running("web", untrue))
		c, one := watch(t, s, "/apis/v1/watch", "", false), watch(t, s, "/apis/v1/watch?pod=default/web", "", false)
		expect(t, c.take(), "reset pod node synced")
		expect(t, one.take(), "detail")

		audited.set(func(r *audit.Report) {
			for i := range r.Differences {
				for j := range r.Differences[i].Evidence {
					d := &r.Differences[i]
					d.Evidence = append([]audit.Evidence{}, d.Evidence...)
					d.Evidence[j].At = d.Evidence[j].At.Add(time.Second)
				}
			}
			r.At = r.At.Add(time.Second)
		})
		said = said.Add(time.Second)
		node.set(running("web", untrue))
		node.announce("")
		time.Sleep(6 * time.Second)
		expect(t, c.take(), "")
		expect(t, one.take(), "")

		audited.set(func(r *audit.Report) { r.Differences[3].Drift = true })
		node.announce("uid-web")
		events := c.take()
		expect(t, events, "pod node") // the node counts them
		var row view.PodSummary
		if err := json.Unmarshal([]byte(events[0].data), &row); err != nil || row.Drift != 2 {
			t.Errorf("got %+v, %v, want 2 differences", row, err)
		}
		events = one.take()
		expect(t, events, "detail")
		var detail view.PodDetail
		if err := json.Unmarshal([]byte(events[0].data), &detail); err != nil || len(detail.Differences) != 2 || !detail.Differences[1].Drift || len(detail.Pictures) != 4 {
			t.Errorf("got %+v, %v", detail, err)
		}
		c.leave()
		one.leave()
	})
}

// An alert that fires changes its pod's row, and the node.
func TestAWatchFollowsAlerts(t *testing.T) {
	alerts := &fakeAlerts{}
	bubble(t, func(o *queryapi.Options) { o.Alerts = alerts }, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		node.set(running("web"))
		c := watch(t, s, "/apis/v1/watch", "", false)
		expect(t, c.take(), "reset pod node synced")
		alerts.mu.Lock()
		alerts.alerts = sampleAlerts().alerts
		alerts.mu.Unlock()
		node.announce("uid-web")
		node.announce("")
		time.Sleep(2 * time.Second)
		events := c.take()
		expect(t, events, "pod node")
		var row view.PodSummary
		if err := json.Unmarshal([]byte(events[0].data), &row); err != nil || row.Alerts != 2 {
			t.Errorf("got %+v, %v, want 2 alerts: one is silenced, one is pending, one is over", row, err)
		}
		var detail view.NodeDetail
		if err := json.Unmarshal([]byte(events[1].data), &detail); err != nil || detail.Firing != 3 || len(detail.Alerts) != 4 || detail.Alerts[0].Rule != "Drift" {
			t.Errorf("got %d firing, %+v, %v", detail.Firing, detail.Alerts, err)
		}
		c.leave()
	})
}

// Describe is what the server answers, so that rules and people see the same.
func TestDescribe_EqualsTheServedPod(t *testing.T) {
	options := queryapi.Options{Sources: view.Sources{Source: sampleNode(), Location: time.UTC}, Epoch: "e1"}
	observed(&options)
	s, err := queryapi.New(options)
	if err != nil {
		t.Fatal(err)
	}
	var served view.PodDetail
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, request(http.MethodGet, "/apis/v1/pods/default/web", nil))
	if err := json.Unmarshal(answer.Body.Bytes(), &served); err != nil {
		t.Fatal(err)
	}
	described, ok := view.Describe(options.Sources, "uid-web")
	if got, want := asJSON(t, described), asJSON(t, served); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok := view.Describe(options.Sources, "uid-nowhere"); ok {
		t.Error("a pod that is not there is described")
	}
	if node := view.DescribeNode(options.Sources); node.Drift != 3 || len(node.Differences) != 2 || node.Kubelet == nil || len(node.Sides) != 4 {
		t.Errorf("got %+v", node)
	}
	options.Alerts, options.Location = nil, nil // as rules ask
	if detail, _ := view.Describe(options.Sources, "uid-web"); detail.AlertDetails != nil || detail.Drift != 1 {
		t.Errorf("got %+v", detail)
	}
}

func asJSON(t *testing.T, value any) (object map[string]any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// However much is wrong, what is sent with each change of the node is bounded.
func TestANodeShowsABoundedNumber(t *testing.T) {
	audited, alerts := &fakeAudit{}, &fakeAlerts{}
	for i := range 3 * view.MaxShown {
		audited.report.Differences = append(audited.report.Differences, audit.Difference{Kind: audit.OrphanedPodDirectory, Subject: fmt.Sprint(i), Drift: true})
		alerts.alerts = append(alerts.alerts, alert.Alert{Fingerprint: fmt.Sprint(i), State: alert.Firing})
	}
	node := view.DescribeNode(view.Sources{Source: sampleNode(), Audit: audited, Alerts: alerts})
	if node.Drift != 3*view.MaxShown || len(node.Differences) != view.MaxShown || node.Firing != 3*view.MaxShown || len(node.Alerts) != view.MaxShown {
		t.Errorf("got %d of %d differences and %d of %d alerts", len(node.Differences), node.Drift, len(node.Alerts), node.Firing)
	}
}

// FuzzSilence: whatever is sent over the socket, the answer is a silence that passes the check, or a
// Status; and nothing else is stored.
func FuzzSilence(f *testing.F) {
	f.Add("application/json", silenceText(), "localhost")
	f.Add("application/json; charset=utf-8", silenceText(`"value"`, `"isRegex":true,"value"`), "127.0.0.1")
	f.Add("text/plain", silenceText(), "evil.example")
	f.Add("application/json", `{"matchers":[{"name":"\u0000","value":null}],"until":-1}`, "localhost")
	f.Add("application/json", strings.Repeat(`{"matchers":[`, 500), "localhost")
	f.Fuzz(func(t *testing.T, contentType, body, host string) {
		alerts := &fakeAlerts{}
		s := newServer(t, newFakeNode(time.Now), func(o *queryapi.Options) { o.Alerts = alerts })
		answer, status := send(s, http.MethodPost, "/apis/v1/silences", body, func(r *http.Request) {
			r.Header["Content-Type"], r.Host = []string{contentType}, host
		})
		stored := alerts.Silences()
		if answer.Code == http.StatusOK {
			if len(stored) != 1 {
				t.Fatalf("stored are %+v", stored)
			}
			if err := stored[0].Check(time.Now()); err != nil {
				t.Errorf("%+v was stored: %v", stored[0], err)
			}
			return
		}
		if len(stored) > 0 || int(status.Code) != answer.Code || status.Message == "" || answer.Body.Len() > 4096 {
			t.Errorf("got %d %s, stored are %+v", answer.Code, answer.Body, stored)
		}
	})
}

// FuzzMatcher: a matcher that is read is written so that it is read the same.
func FuzzMatcher(f *testing.F) {
	for _, text := range []string{"a=b", "a!=b", "a=~b.*", "a!~b|c", `a="b c"`, "a=", "=", "a=!b", "a~b", "a!b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := alert.ParseMatcher(text)
		if err != nil || strings.HasPrefix(m.Value, `"`) || strings.HasPrefix(m.Value, "~") {
			return // the latter two are only written in quotes
		}
		if again, err := alert.ParseMatcher(m.String()); err != nil || again != m {
			t.Errorf("%q is read as %+v, and %s as %+v, %v", text, m, m, again, err)
		}
		m.Matches(text)
	})
}

// A log that grows is no change of the node; a problem that is found in it is.
func TestAWatchFollowsProblemsInLogs(t *testing.T) {
	bubble(t, nil, func(t *testing.T, node *fakeNode, s *queryapi.Server) {
		set := func(r logs.Report) {
			node.mu.Lock()
			node.node.Logs = &r
			node.mu.Unlock()
			node.announce("")
			time.Sleep(2 * time.Second)
		}
		set(logs.Report{Sources: []logs.Source{{Name: "kernel", Lines: 1}}})
		c := watch(t, s, "/apis/v1/watch", "", false)
		expect(t, c.take(), "reset node synced")
		set(logs.Report{Sources: []logs.Source{{Name: "kernel", Lines: 2, Behind: 7}}})
		expect(t, c.take(), "")
		set(logs.Report{Sources: []logs.Source{{Name: "kernel", Lines: 3}}, Problems: []logs.Problem{{Reason: "OOMKilling"}}})
		expect(t, c.take(), "node")
		c.leave()
	})
}
