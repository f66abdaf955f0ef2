package alertmanager

import (
	"strings"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/deliver"
)

// alert is an alert in the words of Alertmanager's API v2.
type posted struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// translate makes of an alert what Alertmanager takes. A firing one ends when it expires, unless it is
// sent again before.
func translate(a *alert.Alert, node, externalURL string, expires time.Time) posted {
	out := posted{Labels: labels(a, node), Annotations: annotations(a.Annotations), StartsAt: a.Since, EndsAt: expires, GeneratorURL: deliver.Page(a, externalURL)}
	if a.Firing != nil {
		out.StartsAt = *a.Firing
	}
	if a.State == alert.Resolved && a.Resolved != nil {
		out.EndsAt = *a.Resolved
	}
	// Alertmanager refuses an alert that ends before it starts, as after a clock that was set back.
	if !out.EndsAt.After(out.StartsAt) {
		if a.State == alert.Resolved {
			out.StartsAt = out.EndsAt.Add(-time.Millisecond)
		} else {
			out.StartsAt = out.EndsAt.Add(-lives * defaultRepeat)
		}
	}
	return out
}

// labels identify the alert for Alertmanager: the labels of the rule, and the alert's subject.
func labels(a *alert.Alert, node string) map[string]string {
	out := make(map[string]string, len(a.Labels)+6)
	for name, value := range map[string]string{
		"alertname": a.Rule, "severity": a.Severity, "node": node, "namespace": a.Namespace, "pod": a.Pod, "container": a.Container,
	} {
		if value != "" {
			out[name] = text(value)
		}
	}
	for name, value := range a.Labels {
		if value != "" { // an empty label is no label
			out[labelName(name)] = text(value)
		}
	}
	return out
}

func annotations(of map[string]string) map[string]string {
	out := make(map[string]string, len(of))
	for name, value := range of {
		out[labelName(name)] = text(value)
	}
	return out
}

// labelName is a name that Prometheus allows: letters, digits and underscores, no digit first.
func labelName(name string) string {
	valid := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if valid == "" || valid[0] >= '0' && valid[0] <= '9' {
		valid = "_" + valid
	}
	return valid
}

func text(value string) string { return strings.ToValidUTF8(value, "?") }
