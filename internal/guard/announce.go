package guard

import (
	"slices"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/history"
)

// announce sends notices of what one look has changed.
func (g *Guard) announce(before, after Report, d Decision) {
	changed := !sameVerdict(before.Verdict, after.Verdict) || before.Withheld != after.Withheld || before.PID != after.PID
	switch {
	case before.Health != after.Health:
		g.announceHealth(before, after)
	case changed:
		g.notify(NoticeReport, Summary(after.Verdict))
	}
	g.announceSuppression(after, d)
	if changed || !before.Maintenance.Equal(after.Maintenance) {
		g.o.Changed()
	}
}

// sameVerdict reports whether two verdicts differ in nothing but words about times.
func sameVerdict(a, b Verdict) bool {
	return a.Health == b.Health && slices.EqualFunc(a.Reasons, b.Reasons, func(x, y Reason) bool { return x.Code == y.Code })
}

// Summary is a verdict in one line: the signs, and the remedy.
func Summary(v Verdict) string {
	var lines []string
	for _, r := range v.Reasons {
		lines = append(lines, r.Message)
	}
	if v.Do != "" {
		lines = append(lines, "what would help: "+v.Do)
	}
	if len(lines) == 0 {
		return "the kubelet does its work"
	}
	return strings.Join(lines, "; ")
}

func (g *Guard) announceHealth(before, after Report) {
	summary := Summary(after.Verdict)
	g.log.Info("verdict", "from", before.Health, "to", after.Health, "because", summary)
	r := history.Record{Observed: after.At, Kind: history.KindNode, Subject: "kubelet", From: string(before.Health), To: string(after.Health), Message: summary}
	if len(after.Reasons) > 0 {
		r.Reason = after.Reasons[0].Code
	}
	g.o.Record(r)
	switch {
	case after.Health == Unhealthy:
		g.notify(NoticeUnhealthy, summary)
	case before.Health == Unhealthy:
		g.notify(NoticeHealthy, "the kubelet is "+string(after.Health)+": "+summary)
	default:
		g.notify(NoticeReport, summary)
	}
}

// announceSuppression sends one notice of why a restart is withheld, and another one when the reason changes.
func (g *Guard) announceSuppression(after Report, d Decision) {
	if g.o.Policy.Never != "" || after.PID != 0 && after.At.Sub(after.Started) < g.o.Policy.CoolDown {
		return // a kubelet that starts, or that is never restarted, needs no notice
	}
	g.mu.Lock()
	last := g.suppression
	switch {
	case d.Withheld == "" || after.Health != Unhealthy && d.Do == "", g.under != "" && d.Withheld == g.under:
		g.suppression = ""
		if after.Health != Healthy { // it goes on, and only another reason is announced
			g.suppression = last
		}
	default:
		g.suppression = d.Withheld
	}
	news := g.suppression != "" && g.suppression != last
	g.mu.Unlock()
	if !news {
		return
	}
	message := "no restart: " + d.Withheld
	if d.Do != "" {
		message += "; what would help: " + d.Do
	}
	if !d.Next.IsZero() {
		message += "; not before " + d.Next.UTC().Format(time.RFC3339)
	}
	g.log.Warn("restart withheld", "why", d.Withheld, "do", d.Do)
	g.o.Record(history.Record{Observed: after.At, Kind: history.KindNode, Subject: "kubelet", To: "restart withheld", Message: message})
	g.notify(NoticeSuppressed, message)
}

func (g *Guard) notify(kind NoticeKind, message string) {
	n := Notice{Kind: kind, At: time.Now(), Message: message, Report: g.Report()}
	for _, output := range g.o.Outputs {
		output.Notify(n)
	}
}
