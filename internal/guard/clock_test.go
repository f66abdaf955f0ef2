package guard_test

import (
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

// machine is a healthy kubelet of systemd on a machine whose clock steps once.
type machine struct {
	step   time.Duration // of the clock, at stepAt
	stepAt time.Duration
	change func(e *guard.Evidence, now time.Time, passed time.Duration)
}

func (m machine) now(passed time.Duration) time.Time {
	if passed >= m.stepAt {
		return begin.Add(passed + m.step)
	}
	return begin.Add(passed)
}

// evidence is that of a machine after so much time. The kubelet renews its lease every 10 s by this clock.
func (m machine) evidence(passed time.Duration) guard.Evidence {
	now := m.now(passed)
	e := well(now)
	renewed := m.now(passed.Truncate(10 * time.Second))
	e.Lease.Value.Renewed, e.Lease.Value.Seen = renewed, renewed
	if m.change != nil {
		m.change(&e, now, passed)
	}
	return e
}

// judge looks every three seconds for a while, and has each verdict checked.
func (m machine) judge(until time.Duration, check func(passed time.Duration, e guard.Evidence, v guard.Verdict)) {
	var state guard.State
	for passed := time.Duration(0); passed <= until; passed += lookEvery {
		var v guard.Verdict
		e := m.evidence(passed)
		v, state = guard.Judge(e, state, m.now(passed))
		check(passed, e, v)
	}
}

var steps = []time.Duration{-25 * time.Hour, -2 * time.Hour, -time.Minute, time.Minute, 2 * time.Hour, 25 * time.Hour}

func TestAStepOfTheClockIsNoSign(t *testing.T) {
	for _, step := range steps {
		machine{step: step, stepAt: 61 * time.Second}.judge(10*time.Minute, func(passed time.Duration, _ guard.Evidence, v guard.Verdict) {
			if v.Health != guard.Healthy {
				t.Errorf("%v after a step of %v: %s", passed, step, describe(v))
			}
		})
	}
}

// A kubelet that is silent before, while or after the clock steps is unhealthy as soon as otherwise, and healthy again as
// soon. Here a step ahead looks like a time without looks, so that the observations of before it do not count.
func TestAStepOfTheClockHidesNothing(t *testing.T) {
	for _, step := range steps {
		for _, stepAt := range []time.Duration{20 * time.Second, 64 * time.Second, 100 * time.Second, 310 * time.Second} {
			m := machine{step: step, stepAt: stepAt}
			noticed := 75 * time.Second
			if step > time.Hour && stepAt < noticed {
				noticed = max(noticed, stepAt+15*time.Second)
			}
			m.change = func(e *guard.Evidence, now time.Time, passed time.Duration) {
				if passed < time.Minute || passed >= 5*time.Minute {
					return
				}
				e.Healthz = guard.Read(now, says("[-]syncloop failed"))
			}
			m.judge(8*time.Minute, func(passed time.Duration, e guard.Evidence, v guard.Verdict) {
				switch {
				case passed >= noticed && passed < 5*time.Minute && v.Health != guard.Unhealthy,
					passed >= 5*time.Minute+9*time.Second && v.Health != guard.Healthy:
					t.Fatalf("%v, with a step of %v after %v: %s", passed, step, stepAt, describe(v))
				case v.Health == guard.Unhealthy && (!v.Helps || v.Since.After(e.Healthz.At)):
					t.Fatalf("%v, with a step of %v after %v: %+v", passed, step, stepAt, v)
				}
			})
		}
	}
}

// The same for a lease: a deadlocked kubelet that renews none.
func TestAStepOfTheClockHidesNoStaleLease(t *testing.T) {
	for _, step := range steps {
		m := machine{step: step, stepAt: 64 * time.Second}
		m.change = func(e *guard.Evidence, now time.Time, passed time.Duration) {
			if passed >= time.Minute {
				e.Lease.Value.Renewed = m.now(time.Minute)
				e.Lease.Value.Seen = now.Add(time.Minute - passed) // a count of time, which does not step
				e.Writes = guard.Read(now, accepted)
			}
		}
		var last guard.Verdict
		m.judge(4*time.Minute, func(_ time.Duration, _ guard.Evidence, v guard.Verdict) { last = v })
		if last.Health != guard.Unhealthy || codes(last) != guard.LeaseStale {
			t.Errorf("a step of %v: %s", step, describe(last))
		}
	}
}

// systemd remembers by which clock a kubelet was started. A machine that starts with a clock that is ahead, which is
// then set, does not have a kubelet that is starting for hours.
func TestAStartInTheFutureIsNoStart(t *testing.T) {
	e := well(begin)
	e.Process.Value.Started = begin.Add(3 * time.Hour)
	allowed := guard.DefaultPolicy()
	allowed.Restart = true
	d := guard.Decide(unhealthy(guard.LeaseStale), allowed, guard.History{Process: e.Process}, begin)
	if d.Restart != guard.TargetKubelet {
		t.Errorf("withheld: %s, until %v", d.Withheld, d.Next)
	}
	m := machine{step: -3 * time.Hour, stepAt: 2 * time.Second, change: func(e *guard.Evidence, now time.Time, _ time.Duration) {
		e.Process.Value.Started = begin.Add(-10 * time.Minute)
		e.Healthz = guard.Read(now, says("[-]log failed"))
	}}
	var last guard.Verdict
	m.judge(time.Minute, func(_ time.Duration, _ guard.Evidence, v guard.Verdict) { last = v })
	if last.Health != guard.Unhealthy || !last.Helps {
		t.Errorf("got %s", describe(last))
	}
}

// What systemd has counted before the guard looked is no crash loop now: a kubelet that waited for its configuration for
// an hour has been restarted hundreds of times.
func TestRestartsBeforeTheFirstLookAreNoCrashLoop(t *testing.T) {
	count := uint32(360)
	m := machine{change: func(e *guard.Evidence, _ time.Time, _ time.Duration) {
		e.Process.Value.Unit, e.Process.Value.Starts = "active/running", count
		e.Process.Value.Started = begin.Add(-90 * time.Second) // one that has run for long is in no loop anyway
	}}
	m.judge(time.Minute, func(passed time.Duration, _ guard.Evidence, v guard.Verdict) {
		if v.Health != guard.Healthy {
			t.Fatalf("after %v: %s", passed, describe(v))
		}
	})
}

// Nobody looks for ten minutes, as while a virtual machine is paused or statusd does not run. What was seen before does not add
// up with what is seen after, and a kubelet that was paused too gets the time to renew its lease.
func TestATimeWithoutLooksProvesNothing(t *testing.T) {
	const asleep, awake, renews = 60 * time.Second, 660 * time.Second, 680 * time.Second
	for name, change := range map[string]func(e *guard.Evidence, now time.Time, passed time.Duration){
		"the lease is renewed after 20 s": func(e *guard.Evidence, _ time.Time, passed time.Duration) {
			if passed >= asleep && passed < renews {
				e.Lease.Value.Renewed, e.Lease.Value.Seen = begin.Add(asleep), begin.Add(asleep)
			}
		},
		"one request fails before, two after": func(e *guard.Evidence, now time.Time, passed time.Duration) {
			if passed == asleep-lookEvery || passed == awake || passed == awake+lookEvery {
				e.Healthz = guard.Read(now, silent("i/o timeout"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{change: change}
			var state guard.State
			for passed := time.Duration(0); passed <= awake+2*time.Minute; passed += lookEvery {
				if passed >= asleep && passed < awake {
					continue
				}
				var v guard.Verdict
				if v, state = guard.Judge(m.evidence(passed), state, m.now(passed)); v.Health != guard.Healthy {
					t.Errorf("after %v: %s", passed, describe(v))
				}
			}
		})
	}
}
