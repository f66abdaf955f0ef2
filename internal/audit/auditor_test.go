package audit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
)

// steady is a node with pods that run, each with one container, "app".
func steady(pods int) *simNode { return steadyOf("plain", pods) }

func steadyOf(sort string, pods int) *simNode {
	n := &simNode{poll: time.Second, lagRuntime: 50 * time.Millisecond}
	for i := range pods {
		s := &simPod{pod: newPod(sort, fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("uid-%d", i)))}
		s.moments = []moment{{inAPI: true, admitted: true, dir: true, sandbox: true}}
		for _, c := range s.pod.Spec.Containers {
			s.starts(100*time.Millisecond, c.Name)
		}
		n.pods = append(n.pods, s)
	}
	return n
}

func soon() time.Duration { return 300 * time.Millisecond }

func (n *simNode) finish() *simNode {
	for _, s := range n.pods {
		s.finish(soon, soon)
	}
	return n
}

// run audits every half second, and returns the last report and all that ever was drift.
func run(a *audit.Auditor, n *simNode, from, to time.Duration) (last audit.Report, ever []string) {
	for now := from; now <= to; now += time.Second / 2 {
		last = a.Audit(n.facts(now))
		for _, d := range drifts(last) {
			if !slices.Contains(ever, d) {
				ever = append(ever, d)
			}
		}
	}
	return last, ever
}

// hidden plants an exit that the kubelet does not see.
func hidden(n *simNode) *simNode {
	inRuntime(n.pods[0], func(list []audit.Container) []audit.Container { return exitOf(list, "app") })
	return n
}

// shift moves all times from an instant on, as they are after the clock was set.
func shift(f *audit.Facts, from, by time.Duration) {
	move := func(t *time.Time) {
		if !t.Before(at(from)) {
			*t = t.Add(by)
		}
	}
	move(&f.Now)
	for _, a := range []*audit.Answer{&f.APIAnswer, &f.KubeletAnswer, &f.RuntimeAnswer, &f.MachineAnswer} {
		move(&a.At)
		move(&a.Since)
		move(&a.Silent)
	}
	for _, list := range []map[types.UID]audit.Sighting{f.APIPods, f.KubeletPods} {
		for uid, s := range list {
			move(&s.At)
			list[uid] = s
		}
	}
	for id, c := range f.Containers {
		move(&c.At)
		move(&c.Created)
		move(&c.Started)
		move(&c.Finished)
		f.Containers[id] = c
	}
	if !f.ClockAt.Before(at(from)) {
		f.Clock -= by // the server's clock has not changed
	}
	move(&f.LeaseAt)
	move(&f.ClockAt)
	move(&f.Lease.Spec.RenewTime.Time)
}

// TestClockStepLosesNoDrift: what was drift stays, and what becomes drift is found as usual.
func TestClockStepLosesNoDrift(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		for _, when := range []time.Duration{lieAt - time.Second, lieAt + time.Second, lieAt + 30*time.Second} {
			n := hidden(steady(1).finish())
			n.change = func(_ time.Duration, f *audit.Facts) { shift(f, when, by) }
			last, _ := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, lieAt+40*time.Second)
			if got := drifts(last); !slices.Contains(got, "KubeletBehindRuntime uid-0/web-0 app") {
				t.Errorf("clock set by %v at %v: found %v, and not the exit", by, when, got)
			}
		}
	}
}

// TestClockStepLosesNothingThatGoesByTheClock: a lease and a grace that have ended do not begin again.
func TestClockStepLosesNothingThatGoesByTheClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		n := steady(1).finish()
		inFacts(n, func(_ time.Duration, f *audit.Facts) {
			f.Lease.Spec.RenewTime, f.LeaseAt = &metav1.MicroTime{Time: at(lieAt)}, at(lieAt)
			f.APIPods["uid-0"].Pod.DeletionTimestamp = &metav1.Time{Time: at(lieAt)}
		})
		planted := n.change
		const when = lieAt + 4*time.Minute
		n.change = func(now time.Duration, f *audit.Facts) {
			planted(now, f)
			lease, leaseAt := f.Lease.Spec.RenewTime.Time, f.LeaseAt
			if shift(f, when, by); now >= lieAt {
				f.Lease.Spec.RenewTime.Time, f.LeaseAt = lease, leaseAt
			}
		}
		a := audit.NewAuditor(audit.AuditorOptions{})
		want := []string{"LeaseStale / ", "StuckTerminating uid-0/web-0 "}
		for now := time.Duration(0); now < when+4*time.Minute; now += time.Second / 2 {
			got := slices.DeleteFunc(drifts(a.Audit(n.facts(now))), func(d string) bool { return d == "ClockSkew / " })
			if now > when-time.Minute && !slices.Equal(got, want) {
				t.Fatalf("clock set by %v: after %v: %v, want %v", by, now-when, got, want)
			}
		}
	}
}

// TestProgressIsNoDrift: a container that crashes faster than news takes always differs, and news of it
// arrives all the time.
func TestProgressIsNoDrift(t *testing.T) {
	for _, own := range []bool{true, false} {
		n := steady(1)
		n.own = own
		for range 40 {
			n.pods[0].exits(time.Second, "app", 1)
			n.pods[0].starts(time.Second, "app")
		}
		lag := func() time.Duration { return 4 * time.Second }
		n.pods[0].finish(lag, lag)
		if _, ever := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, 80*time.Second); len(ever) > 0 {
			t.Errorf("own %v: %v", own, ever)
		}
	}
}

// TestOverloadIsNoDrift: a kubelet that reports one container after the other, for minutes and in no
// order, is slow, and not silent.
func TestOverloadIsNoDrift(t *testing.T) {
	for _, own := range []bool{true, false} {
		n := steady(40)
		n.own = own
		for _, s := range n.pods {
			for _, c := range s.pod.Spec.Containers {
				s.exits(lieAt-s.moments[len(s.moments)-1].at, c.Name, 1)
				s.starts(10*time.Millisecond, c.Name)
			}
		}
		n.finish()
		// After lieAt, one pod is reported every 700 ms.
		order := rand.New(rand.NewPCG(1, 2)).Perm(len(n.pods))
		for turn, i := range order {
			s := n.pods[i]
			for j := range s.moments {
				if s.moments[j].at >= lieAt {
					s.toKubelet[j] = lieAt + time.Duration(turn+1)*700*time.Millisecond
					s.toAPI[j] = s.toKubelet[j] + 300*time.Millisecond
				}
			}
		}
		if _, ever := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, lieAt+time.Minute); len(ever) > 0 {
			t.Errorf("own %v: overload was drift: %v", own, ever)
		}
	}
}

// TestMeasuredPropagation: the report has what news took.
func TestMeasuredPropagation(t *testing.T) {
	n := steady(20)
	n.own = true
	for _, s := range n.pods {
		s.exits(10*time.Second, "app", 1)
		s.starts(100*time.Millisecond, "app")
	}
	n.finish()
	last, _ := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, 30*time.Second)
	for side, most := range map[audit.Side]time.Duration{audit.SideKubelet: 1400 * time.Millisecond, audit.SideAPI: 900 * time.Millisecond} {
		p := last.Propagation[side]
		if p.Samples < 20 || p.Median < 300*time.Millisecond || p.P99 > most || p.Bound < p.P99 {
			t.Errorf("%s: %+v, want at least 20 samples between 300ms and %v", side, p, most)
		}
	}
}

// TestNoDriftWhileASideComesBack: what a side does not have yet is on its way.
func TestNoDriftWhileASideComesBack(t *testing.T) {
	late := func(n *simNode, until time.Duration) *simNode {
		n.finish()
		for _, s := range n.pods {
			for j := range s.moments {
				s.toKubelet[j], s.toAPI[j] = max(s.toKubelet[j], until), max(s.toAPI[j], until)
			}
		}
		return n
	}
	t.Run("kubelet starts with 30 pods", func(t *testing.T) {
		n := late(steady(30), 45*time.Second)
		n.change = func(_ time.Duration, f *audit.Facts) { f.Process.Started, f.KubeletAnswer.Since = epoch, epoch }
		if _, ever := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, 2*time.Minute); len(ever) > 0 {
			t.Error(ever)
		}
	})
	t.Run("API server down for 60 s", func(t *testing.T) {
		n := steady(5)
		n.own = true
		for _, s := range n.pods {
			s.exits(20*time.Second, "app", 1)
			s.starts(time.Second, "app")
		}
		n.finish()
		for _, s := range n.pods {
			for j := range s.moments {
				if s.toAPI[j] > 10*time.Second {
					s.toAPI[j] = 80 * time.Second
				}
			}
		}
		n.change = func(now time.Duration, f *audit.Facts) {
			if now > 10*time.Second && now < 70*time.Second {
				f.APIAnswer.Err, f.APIAnswer.Silent, f.APIAnswer.Since = "connection refused", at(10*time.Second), time.Time{}
			} else if now >= 70*time.Second {
				f.APIAnswer.Since = at(70 * time.Second)
			}
			if now > 10*time.Second && now < 90*time.Second { // the kubelet renews its lease after a pause
				f.Lease.Spec.RenewTime, f.LeaseAt = &metav1.MicroTime{Time: at(5 * time.Second)}, at(5*time.Second)
			}
		}
		if _, ever := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, 2*time.Minute); len(ever) > 0 {
			t.Error(ever)
		}
	})
	t.Run("observer starts", func(t *testing.T) {
		n := late(steady(10), 105*time.Second)
		n.change = func(_ time.Duration, f *audit.Facts) {
			f.APIAnswer.Since, f.KubeletAnswer.Since, f.RuntimeAnswer.Since = at(lieAt), at(lieAt), at(lieAt)
		}
		if _, ever := run(audit.NewAuditor(audit.AuditorOptions{}), n, lieAt, 3*time.Minute); len(ever) > 0 {
			t.Error(ever)
		}
	})
}

// TestUnknownSideResolvesNothing: drift stays while a side that it rests on does not answer, and goes
// when both answer and agree.
func TestUnknownSideResolvesNothing(t *testing.T) {
	n := hidden(steady(1).finish())
	silent := func(now time.Duration, f *audit.Facts) {
		if now > lieAt+30*time.Second && now < lieAt+60*time.Second {
			f.RuntimeAnswer.Err = "context deadline exceeded"
		}
	}
	n.change = silent
	a := audit.NewAuditor(audit.AuditorOptions{})
	last, _ := run(a, n, 0, lieAt+20*time.Second)
	if len(drifts(last)) != 1 || last.Differences[0].Certainty != audit.Certain {
		t.Fatalf("before: %+v", last.Differences)
	}
	last, _ = run(a, n, lieAt+31*time.Second, lieAt+50*time.Second)
	if len(drifts(last)) != 1 || last.Differences[0].Certainty != audit.Likely {
		t.Fatalf("while the runtime is silent: %+v", last.Differences)
	}
	b := audit.NewAuditor(audit.AuditorOptions{State: a.State()})
	gone := n.facts(lieAt + 51*time.Second)
	delete(gone.APIPods, "uid-0")
	if last := b.Audit(gone); len(last.Differences) != 0 {
		t.Errorf("the pod is gone from the API: %+v", last.Differences)
	}
	n.pods[0].lieRuntime = nil
	last, _ = run(a, n, lieAt+61*time.Second, lieAt+61*time.Second)
	if len(last.Differences) != 0 {
		t.Fatalf("after it: %+v", last.Differences)
	}
}

// TestStateSurvivesARestart: the next process knows at once what was drift, and since when.
func TestStateSurvivesARestart(t *testing.T) {
	n := hidden(steady(1).finish())
	a := audit.NewAuditor(audit.AuditorOptions{})
	before, _ := run(a, n, 0, lieAt+30*time.Second)
	b := audit.NewAuditor(audit.AuditorOptions{State: a.State()})
	n.change = func(_ time.Duration, f *audit.Facts) { f.APIAnswer = audit.Answer{} } // not asked yet
	after := b.Audit(n.facts(lieAt + 40*time.Second))
	if len(drifts(after)) != 1 || !after.Differences[0].Seen.Equal(before.Differences[0].Seen) {
		t.Errorf("after the restart: %+v, want the drift of before it", after.Differences)
	}
	if after.Propagation[audit.SideAPI].Samples != before.Propagation[audit.SideAPI].Samples {
		t.Error("what was measured is lost")
	}
	for _, bad := range []string{"", "{", `{"version":99,"counted":5}`, `{"version":1,"entries":[null,{}],"changes":{"x":null},"samples":{"api":null}}`} {
		if r := audit.NewAuditor(audit.AuditorOptions{State: []byte(bad)}).Audit(steady(1).finish().facts(time.Minute)); len(r.Differences) != 0 {
			t.Errorf("state %q: %+v", bad, r.Differences)
		}
	}
}

// TestDue: an observer that audits only when it is due finds the drift, and sleeps when nothing is.
func TestDue(t *testing.T) {
	n := hidden(steady(1).finish())
	a := audit.NewAuditor(audit.AuditorOptions{})
	a.Audit(n.facts(lieAt - time.Second))
	if lease := at(lieAt - 10*time.Second + 40*time.Second); !a.Due().Equal(lease) {
		t.Fatalf("due at %v with nothing to wait for but the lease until %v", a.Due(), lease)
	}
	a.Audit(n.facts(lieAt + time.Second))
	for range 100 {
		if last := a.Audit(n.facts(a.Due().Sub(epoch))); len(drifts(last)) == 1 {
			if in := a.Due().Sub(last.At); in < 20*time.Second {
				t.Errorf("due in %v, though all is said", in)
			}
			return
		}
	}
	t.Error("the drift was not found by looking when it is due")
}

// TestFrozenKubelet: a kubelet that is stopped by a signal is not waited for, and one cause is one
// difference, with the lease beside it once it is stale.
func TestFrozenKubelet(t *testing.T) {
	for _, own := range []bool{true, false} {
		n := hidden(steady(3).finish())
		n.own = own
		inFacts(n, func(now time.Duration, f *audit.Facts) {
			f.Process.Stopped = true
			f.Lease.Spec.RenewTime, f.LeaseAt = &metav1.MicroTime{Time: at(lieAt)}, at(lieAt)
			f.KubeletAnswer.At = at(lieAt - time.Second)
			if now > lieAt+5*time.Second {
				f.KubeletAnswer.Err, f.KubeletAnswer.Silent = "timeout", at(lieAt)
			}
		})
		a := audit.NewAuditor(audit.AuditorOptions{})
		if last, _ := run(a, n, 0, lieAt+4*time.Second); !slices.Equal(drifts(last), []string{"KubeletBehindRuntime uid-0/web-0 app"}) {
			t.Errorf("own %v: after 4 s: %v", own, drifts(last))
		}
		if last, _ := run(a, n, lieAt+4*time.Second, lieAt+time.Minute); !slices.Equal(drifts(last), []string{"LeaseStale / ", "KubeletBehindRuntime uid-0/web-0 app"}) {
			t.Errorf("own %v: after 60 s: %v", own, drifts(last))
		}
		n.change, n.pods[0].lieRuntime = nil, nil // it has reported the exit, and the container runs again
		if last, _ := run(a, n, lieAt+61*time.Second, lieAt+61*time.Second); len(last.Differences) != 0 {
			t.Errorf("own %v: thawed: %v", own, last.Differences)
		}
	}
}

// TestReadyThoughTheKubeletPulls: a container that was stopped for a new image is not running, and
// the kubelet says so only after the pull (kubernetes #91667).
func TestReadyThoughTheKubeletPulls(t *testing.T) {
	n := hidden(steady(1).finish())
	if last, _ := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, lieAt+20*time.Second); len(drifts(last)) != 1 {
		t.Errorf("found %v", last.Differences)
	}
}

// TestWatchIsConfirmed: a difference with the API counts when a list has shown that the watch missed
// nothing.
func TestWatchIsConfirmed(t *testing.T) {
	n := hidden(steady(1).finish())
	confirmed := at(time.Second)
	n.change = func(_ time.Duration, f *audit.Facts) { f.APIConfirmed = confirmed }
	a := audit.NewAuditor(audit.AuditorOptions{})
	if last, _ := run(a, n, 0, lieAt+time.Minute); len(drifts(last)) != 0 || !slices.Equal(a.Stale(), []audit.Side{audit.SideAPI}) {
		t.Errorf("not confirmed: drift %v, stale %v", drifts(last), a.Stale())
	}
	confirmed = at(lieAt + time.Minute)
	if last, _ := run(a, n, lieAt+time.Minute, lieAt+62*time.Second); len(drifts(last)) != 1 || len(a.Stale()) != 0 {
		t.Errorf("confirmed: drift %v, stale %v", drifts(last), a.Stale())
	}
}

// TestClockIsMeasuredTwice: a clock that is wrong is measured a second time, which takes a request: with watches alone it
// would be drift only when one of them ends.
func TestClockIsMeasuredTwice(t *testing.T) {
	n := steady(1).finish()
	measured := at(lieAt)
	n.change = func(now time.Duration, f *audit.Facts) {
		if now >= lieAt {
			f.Clock, f.ClockAt = -2*time.Minute, measured
		}
	}
	a := audit.NewAuditor(audit.AuditorOptions{})
	if last, _ := run(a, n, 0, lieAt+time.Minute); len(drifts(last)) != 0 || !slices.Equal(a.Stale(), []audit.Side{audit.SideAPI}) {
		t.Errorf("measured once: drift %v, stale %v", drifts(last), a.Stale())
	}
	measured = at(lieAt + time.Minute)
	if last, _ := run(a, n, lieAt+time.Minute, lieAt+62*time.Second); !slices.Equal(drifts(last), []string{"ClockSkew / "}) || len(a.Stale()) != 0 {
		t.Errorf("measured twice: drift %v, stale %v", drifts(last), a.Stale())
	}
}

// TestFreshAnswersAreNeeded: a kubelet that was not asked again may have learned of it since.
func TestFreshAnswersAreNeeded(t *testing.T) {
	n := hidden(steady(1).finish())
	n.own, n.poll = true, 50*time.Second
	a := audit.NewAuditor(audit.AuditorOptions{})
	if last, _ := run(a, n, 0, lieAt+45*time.Second); len(drifts(last)) != 0 || !slices.Equal(a.Stale(), []audit.Side{audit.SideKubelet}) {
		t.Errorf("drift %v, stale %v", drifts(last), a.Stale())
	}
	if last, _ := run(a, n, lieAt+45*time.Second, lieAt+52*time.Second); len(drifts(last)) != 1 {
		t.Errorf("after the next answer: %v", last.Differences)
	}
}

// TestClockStepWhileNewsIsOnItsWay: the clock is set forward between an exit and its report.
func TestClockStepWhileNewsIsOnItsWay(t *testing.T) {
	for _, own := range []bool{true, false} {
		n := steady(1)
		n.own = own
		n.pods[0].exits(lieAt-n.pods[0].copyMoment().at, "app", 1)
		lag := func() time.Duration { return 2 * time.Second }
		n.pods[0].finish(lag, lag)
		n.change = func(_ time.Duration, f *audit.Facts) { shift(f, lieAt+time.Second, time.Hour) }
		_, ever := run(audit.NewAuditor(audit.AuditorOptions{}), n, 0, lieAt+20*time.Second)
		if ever = slices.DeleteFunc(ever, func(d string) bool { return d == "ClockSkew / " }); len(ever) > 0 {
			t.Errorf("own %v: %v", own, ever)
		}
	}
}

// TestExitBesideARunningContainer: the kubelet may be stopping the pod, within its grace, and reports the
// exit with the last container.
func TestExitBesideARunningContainer(t *testing.T) {
	n := hidden(steadyOf("several", 1).finish())
	a := audit.NewAuditor(audit.AuditorOptions{})
	if last, _ := run(a, n, 0, lieAt+40*time.Second); len(drifts(last)) != 0 {
		t.Errorf("within the grace: %v", drifts(last))
	}
	if last, _ := run(a, n, lieAt+40*time.Second, lieAt+50*time.Second); len(drifts(last)) != 1 || last.Differences[0].Certainty != audit.Likely {
		t.Errorf("after the grace: %+v", last.Differences)
	}
}

// A name that no node has gives no differences, which must not look as if all were well.
func TestANodeThatTheAPIDoesNotHave(t *testing.T) {
	for _, c := range []struct {
		words string
		want  bool
	}{{"own", false}, {"deleted", true}, {"deleted silent=api", false}} {
		s := newStory()
		s.tell("node " + c.words)
		if got := audit.NewAuditor(audit.AuditorOptions{}).Audit(s.at(0)).NodeMissing; got != c.want {
			t.Errorf("%s: %t, want %t", c.words, got, c.want)
		}
	}
}
