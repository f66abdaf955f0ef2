package ruleset

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusd/statusd/internal/alert/expr"
	"github.com/statusd/statusd/internal/alert/rulefile"
	"github.com/statusd/statusd/internal/text"
)

func (l *loader) action(n *yaml.Node, r *Rule) {
	var a Action
	before := len(l.Mistakes)
	l.Fields(n, "an action", []rulefile.Key{
		rulefile.Required("action", func(n *yaml.Node) {
			l.Choice(n, (*string)(&a.Kind), string(ActionEvict), string(ActionRestartContainer), string(ActionTaint), string(ActionCordon), string(ActionWebhook), string(ActionRestartKubelet))
		}),
		rulefile.Optional("dryRun", func(n *yaml.Node) {
			if n.Decode(&a.DryRun) != nil || n.Tag != "!!bool" {
				l.Mistake(n, "is %s, want true or false", rulefile.KindOf(n))
			}
		}),
		rulefile.Optional("budget", func(n *yaml.Node) {
			if n.Decode(&a.Budget) != nil || n.Tag != "!!int" || a.Budget < 1 {
				l.Mistake(n, "is %s, want a number of at least 1", rulefile.KindOf(n))
			}
		}),
		rulefile.Optional("per", l.Duration(&a.Per)),
		rulefile.Optional("coolDown", l.Duration(&a.CoolDown)),
		rulefile.Optional("taint", func(n *yaml.Node) {
			l.Text(&a.Taint)(n)
			if _, err := ParseTaint(a.Taint); a.Taint != "" && err != nil {
				l.Mistake(n, "%v", err)
			}
		}),
		rulefile.Optional("url", func(n *yaml.Node) {
			l.Text(&a.URL)(n)
			if a.URL != "" && !isAddress(a.URL) {
				l.Mistake(n, "%q is not an address, want http://HOST/PATH or https://HOST/PATH", text.Cut(a.URL, 256))
			}
		}),
	})
	if before == len(l.Mistakes) {
		l.checkAction(n, r, a)
	}
	r.Actions = append(r.Actions, a)
}

// checkAction finds what does not fit together.
func (l *loader) checkAction(n *yaml.Node, r *Rule, a Action) {
	ofPod := r.Scope == expr.ScopePod || r.Scope == expr.ScopeContainer
	switch {
	case a.Kind == ActionEvict && !ofPod:
		l.Mistake(n, "evict needs a rule of scope pod or container")
	case a.Kind == ActionRestartContainer && r.Scope != expr.ScopeContainer:
		l.Mistake(n, "restartContainer needs a rule of scope container")
	case a.Kind == ActionRestartKubelet && ofPod:
		l.Mistake(n, "restartKubelet needs a rule of scope node or kubelet")
	case (a.Kind == ActionTaint) != (a.Taint != ""):
		l.Mistake(n, "taint: key=value:effect belongs to the action taint, and it needs it")
	case (a.Kind == ActionWebhook) != (a.URL != ""):
		l.Mistake(n, "url belongs to the action webhook, and it needs it")
	case (a.Budget == 0) != (a.Per == 0):
		l.Mistake(n, "budget and per belong together: so many times per duration")
	}
}

// ParseTaint reads KEY[=VALUE]:EFFECT.
func ParseTaint(source string) (v1.Taint, error) {
	left, effect, _ := strings.Cut(source, ":")
	key, value, _ := strings.Cut(left, "=")
	taint := v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
	known := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 || !slices.Contains(known, taint.Effect) {
		return taint, fmt.Errorf("taint %q: want KEY[=VALUE]:NoSchedule, PreferNoSchedule or NoExecute", text.Cut(source, 256))
	}
	return taint, nil
}

// isAddress reports whether a webhook can be called there. Credentials do not belong into a file of rules.
func isAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
