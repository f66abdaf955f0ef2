package queryapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/queryapi"
)

// Maintenance makes the fake one that can be kept from restarting.
func (g *fakeGuard) Maintenance(until time.Time) error {
	g.report.Maintenance = until
	return nil
}

func TestMaintenanceOfTheGuard(t *testing.T) {
	const target = "/apis/v1/guard/maintenance"
	g := sampleGuard()
	s := newServer(t, sampleNode(), func(o *queryapi.Options) { o.Guard = g })
	answer, _ := send(s, http.MethodPost, target, `{"until":"`+until+`"}`)
	var report guard.Report
	if err := json.Unmarshal(answer.Body.Bytes(), &report); err != nil || answer.Code != http.StatusOK || report.Maintenance.Format(time.RFC3339) != g.report.Maintenance.Format(time.RFC3339) {
		t.Fatalf("got %d %s (%v)", answer.Code, answer.Body, err)
	}
	for body, want := range map[string]string{
		``:                                 "invalid body",
		`{"until":"soon"}`:                 "invalid body",
		`{"untill":"` + until + `"}`:       "unknown field",
		`{"until":"` + until + `"} {}`:     "something after",
		`{"until":"2999-01-01T00:00:00Z"}`: "more than a week",
	} {
		before := g.report.Maintenance
		if answer, status := send(s, http.MethodPost, target, body); answer.Code < 400 || !strings.Contains(status.Message, want) || g.report.Maintenance != before {
			t.Errorf("%s: got %d %s, want %s", body, answer.Code, answer.Body, want)
		}
	}
	if answer, _ := send(s, http.MethodPost, target, `{"until":"0001-01-01T00:00:00Z"}`); answer.Code != http.StatusOK || !g.report.Maintenance.IsZero() {
		t.Errorf("it does not end: %d %s", answer.Code, answer.Body)
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	if answer, _ := send(s, http.MethodPost, target, `{"until":"`+until+`"}`, form); answer.Code != http.StatusUnsupportedMediaType {
		t.Errorf("of a form: %d", answer.Code)
	}
	// Maintenance is not served over TCP, and there is no maintenance without a guard.
	tcp := func(r *http.Request) { *r = *request(http.MethodPost, target, nil) }
	if answer, _ := send(s, http.MethodPost, target, `{}`, tcp); answer.Code != http.StatusForbidden {
		t.Errorf("over TCP: %d", answer.Code)
	}
	if answer, _ := send(newServer(t, sampleNode()), http.MethodPost, target, `{"until":"`+until+`"}`); answer.Code != http.StatusNotFound {
		t.Errorf("without a guard: %d", answer.Code)
	}
}
