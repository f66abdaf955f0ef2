package rules

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func (l *loader) action(n *yaml.Node, r *Rule) {
	var a Action
	before := len(l.mistakes)
	l.fields(n, "an action", []key{
		{"action", true, func(n *yaml.Node) {
			l.choice(n, (*string)(&a.Kind), string(ActionEvict), string(ActionRestartContainer), string(ActionTaint), string(ActionCordon), string(ActionWebhook), string(ActionRestartKubelet))
		}},
		{"dryRun", false, func(n *yaml.Node) {
			if n.Decode(&a.DryRun) != nil || n.Tag != "!!bool" {
				l.mistake(n, "is %s, want true or false", kindOf(n))
			}
		}},
		{"budget", false, func(n *yaml.Node) {
			if n.Decode(&a.Budget) != nil || n.Tag != "!!int" || a.Budget < 1 {
				l.mistake(n, "is %s, want a number of at least 1", kindOf(n))
			}
		}},
		{"per", false, l.duration(&a.Per)},
		{"coolDown", false, l.duration(&a.CoolDown)},
		{"taint", false, func(n *yaml.Node) {
			l.text(&a.Taint)(n)
			if _, err := ParseTaint(a.Taint); a.Taint != "" && err != nil {
				l.mistake(n, "%v", err)
			}
		}},
		{"url", false, func(n *yaml.Node) {
			l.text(&a.URL)(n)
			if a.URL != "" && !isAddress(a.URL) {
				l.mistake(n, "%q is no address, want http://HOST/PATH or https://HOST/PATH", bounded(a.URL, 256))
			}
		}},
	})
	if before == len(l.mistakes) {
		l.checkAction(n, r, a)
	}
	r.Actions = append(r.Actions, a)
}

// checkAction finds what does not fit together.
func (l *loader) checkAction(n *yaml.Node, r *Rule, a Action) {
	ofPod := r.Scope == ScopePod || r.Scope == ScopeContainer
	switch {
	case a.Kind == ActionEvict && !ofPod:
		l.mistake(n, "evict needs a rule of scope pod or container")
	case a.Kind == ActionRestartContainer && r.Scope != ScopeContainer:
		l.mistake(n, "restartContainer needs a rule of scope container")
	case a.Kind == ActionRestartKubelet && ofPod:
		l.mistake(n, "restartKubelet needs a rule of scope node or kubelet")
	case (a.Kind == ActionTaint) != (a.Taint != ""):
		l.mistake(n, "taint: key=value:effect belongs to the action taint, and it needs it")
	case (a.Kind == ActionWebhook) != (a.URL != ""):
		l.mistake(n, "url belongs to the action webhook, and it needs it")
	case (a.Budget == 0) != (a.Per == 0):
		l.mistake(n, "budget and per belong together: so many times per duration")
	}
}

// ParseTaint reads KEY[=VALUE]:EFFECT.
func ParseTaint(text string) (v1.Taint, error) {
	left, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(left, "=")
	taint := v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
	known := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 || !slices.Contains(known, taint.Effect) {
		return taint, fmt.Errorf("taint %q: want KEY[=VALUE]:NoSchedule, PreferNoSchedule or NoExecute", bounded(text, 256))
	}
	return taint, nil
}

// isAddress reports whether a webhook can be called there. Credentials do not belong into a file of rules.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
