package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/webhook"
)

const (
	bookWebhook = "/webhook"
	runs        = "Runs" // the rule of the alert for each pod that runs
)

// bookKey names an alert of the upgrade's rules: one for each rule and pod.
type bookKey struct{ rule, pod string }

// alertBook receives alerts as a webhook and as Alertmanager, and keeps what came.
type alertBook struct {
	mu     sync.Mutex                // guards what follows
	came   map[bookKey][]alert.Alert // by the webhook, in order
	starts map[bookKey]time.Time     // startsAt of an alert that fires, as Alertmanager has it
	wrong  []string
}

func newAlertBook() *alertBook {
	return &alertBook{came: map[bookKey][]alert.Alert{}, starts: map[bookKey]time.Time{}}
}

func (b *alertBook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	take := b.takeAlertmanager
	if r.URL.Path == bookWebhook {
		take = b.takeWebhook
	}
	if err := take(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (b *alertBook) takeWebhook(r *http.Request) error {
	var message webhook.Message
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range message.Alerts {
		key := bookKey{a.Rule, a.Pod}
		for _, before := range b.came[key] {
			if before.State == a.State && before.Since.Equal(a.Since) {
				b.wrong = append(b.wrong, fmt.Sprintf("alert %v came twice as %s", key, a.State))
			}
		}
		b.came[key] = append(b.came[key], a.Alert)
	}
	return nil
}

// takeAlertmanager takes what Alertmanager takes: an alert that fires is sent again every minute and after a start, with the same startsAt. A pod that
// flaps may be unready again before the end of its last alert was sent: then startsAt is later.
func (b *alertBook) takeAlertmanager(r *http.Request) error {
	var alerts []struct {
		Labels           map[string]string
		StartsAt, EndsAt time.Time
	}
	if err := json.NewDecoder(r.Body).Decode(&alerts); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, a := range alerts {
		key := bookKey{a.Labels["alertname"], a.Labels["pod"]}
		start, fires := b.starts[key]
		switch {
		case !a.EndsAt.After(now):
			delete(b.starts, key)
		case fires && (a.StartsAt.Before(start) || key.rule == runs && !start.Equal(a.StartsAt)):
			b.wrong = append(b.wrong, fmt.Sprintf("alert %v fires since %s, and fired since %s", key, a.StartsAt, start))
		default:
			b.starts[key] = a.StartsAt
		}
	}
	return nil
}

// compare returns which alerts are not as the pods of the API are.
func (b *alertBook) compare(pods []*v1.Pod) (differences []string) {
	want := map[bookKey]bool{}
	for _, pod := range pods {
		if pod.Status.Phase == v1.PodRunning {
			want[bookKey{runs, pod.Name}] = true
			if isNotReady(*pod) {
				want[bookKey{"Unready", pod.Name}] = true
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := map[bookKey]bool{} // also of alerts that must not fire
	for _, seq := range []iter.Seq[bookKey]{maps.Keys(want), maps.Keys(b.came), maps.Keys(b.starts)} {
		for key := range seq {
			keys[key] = true
		}
	}
	for key := range keys {
		fires, came := want[key], b.came[key]
		byWebhook := len(came) > 0 && came[len(came)-1].State == alert.Firing
		if _, byAlertmanager := b.starts[key]; byWebhook != fires || byAlertmanager != fires {
			differences = append(differences, fmt.Sprintf("alert %v fires: %t by the webhook and %t by Alertmanager, want %t", key, byWebhook, byAlertmanager, fires))
		}
	}
	slices.Sort(differences)
	return differences
}

// violations are alerts that came twice. A pod runs once, so that Runs fires once for each pod.
func (b *alertBook) violations() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := slices.Clone(b.wrong)
	for key, came := range b.came {
		fired := 0
		for _, a := range came {
			if a.State == alert.Firing {
				fired++
			}
		}
		if key.rule == runs && fired != 1 {
			wrong = append(wrong, fmt.Sprintf("alert %v fired %d times", key, fired))
		}
	}
	return wrong
}

func (b *alertBook) count() (fired, resolved int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, came := range b.came {
		for _, a := range came {
			if a.State == alert.Firing {
				fired++
			} else {
				resolved++
			}
		}
	}
	return fired, resolved
}
