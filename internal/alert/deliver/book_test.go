package deliver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/alert/engine"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func firing(name string, at time.Time) engine.Notification {
	return engine.Notification{Alert: alert.Alert{
		Fingerprint: name, Rule: name, State: alert.Firing, Firing: &at, Since: at,
		Labels: map[string]string{"alertname": name}, Annotations: map[string]string{},
	}}
}

func resolved(name string, fired, at time.Time) engine.Notification {
	n := firing(name, fired)
	n.Alert.State, n.Alert.Resolved = alert.Resolved, &at
	return n
}

// script runs a book through steps such as "fire a", and returns what happened.
func script(b *book, steps string) string {
	var out strings.Builder
	b.dropped = func(reason string) { fmt.Fprintf(&out, "drop(%s) ", reason) }
	now := start
	var flight []alert.Alert
	for step := range strings.SplitSeq(steps, ";") {
		words := strings.Fields(step)
		note := func(n engine.Notification) {
			n.Done = func() { fmt.Fprintf(&out, "done(%s %s) ", n.Alert.Fingerprint, n.Alert.State) }
			b.put(n, now)
		}
		switch words[0] {
		case "fire":
			note(firing(words[1], now))
		case "again":
			n := firing(words[1], start.Add(-time.Hour))
			n.Again = true
			note(n)
		case "had":
			n := firing(words[1], start.Add(-time.Hour))
			n.Done = func() { fmt.Fprintf(&out, "done(%s) ", words[1]) }
			b.had(n)
		case "end":
			note(resolved(words[1], now, now))
		case "old-end":
			note(resolved(words[1], start.Add(-time.Hour), now))
		case "silence":
			n := firing(words[1], now)
			n.Alert.Silenced = "s1"
			note(n)
		case "wait":
			d, _ := time.ParseDuration(words[1])
			now = now.Add(d)
		case "take":
			flight = b.take(10, now)
			for _, alert := range flight {
				fmt.Fprintf(&out, "send(%s %s) ", alert.Fingerprint, alert.State)
			}
		case "ok", "refused", "failed", "unsent":
			o := map[string]outcome{"ok": delivered, "refused": refused, "failed": failed, "unsent": unsent}[words[0]]
			for _, alert := range flight {
				b.settle(alert, o, now)
			}
		case "resend":
			b.resend(now, now)
		}
		for _, done := range b.finished {
			done()
		}
		b.finished = nil
	}
	return strings.TrimSpace(out.String())
}

func TestWhatBecomesOfAlerts(t *testing.T) {
	for _, test := range []struct{ name, steps, want string }{
		{"a firing and its end", "fire a; take; ok; end a; take; ok; take",
			"send(a firing) done(a firing) send(a resolved) done(a resolved)"},
		{"over before it was sent", "fire a; end a; take",
			"drop(superseded) done(a firing) done(a resolved)"},
		{"over while it is in flight, and it arrived", "fire a; take; end a; ok; take; ok",
			"send(a firing) done(a firing) send(a resolved) done(a resolved)"},
		{"over while it is in flight, and nothing arrived", "fire a; take; end a; unsent; take",
			"send(a firing) done(a firing) drop(superseded) done(a resolved)"},
		{"over after a try of which the result is unknown", "fire a; take; failed; end a; take; ok",
			"send(a firing) done(a firing) send(a resolved) done(a resolved)"},
		{"over after a try that did not arrive", "fire a; take; unsent; end a; take",
			"send(a firing) drop(superseded) done(a firing) done(a resolved)"},
		{"fired before the process began", "old-end a; take; ok", "send(a resolved) done(a resolved)"},
		{"had before the restart, then over", "again a; end a; take; ok",
			"done(a firing) send(a resolved) done(a resolved)"},
		{"had before the restart and not sent again, then over", "had a; take; end a; take; ok",
			"done(a) send(a resolved) done(a resolved)"},
		{"an end that was sent is not sent again", "fire a; take; ok; end a; take; ok; end a; take",
			"send(a firing) done(a firing) send(a resolved) done(a resolved) done(a resolved)"},
		{"fires again before its end was sent", "fire a; take; ok; end a; fire a; take; ok; take",
			"send(a firing) done(a firing) done(a resolved) send(a firing) done(a firing)"},
		{"the same again is no news", "fire a; take; ok; fire a; take",
			"send(a firing) done(a firing) done(a firing)"},
		{"the same while it is in flight shares its fate", "fire a; take; fire a; failed; take; ok",
			"send(a firing) send(a firing) done(a firing) done(a firing)"},
		{"sent again in time", "fire a; take; ok; wait 59s; take; wait 1s; take; ok",
			"send(a firing) done(a firing) send(a firing)"},
		{"sent again after the receiver was away", "fire a; take; ok; resend; take; ok",
			"send(a firing) done(a firing) send(a firing)"},
		{"refused alerts are tried again with the repetition", "fire a; take; refused; wait 60s; take; ok",
			"send(a firing) drop(refused) done(a firing) send(a firing)"},
		{"a silence before it was sent", "fire a; silence a; take",
			"drop(silenced)"},
		{"a silence stops the repetition, not the end", "fire a; take; ok; silence a; wait 2m; take; end a; take; ok",
			"send(a firing) done(a firing) done(a firing) send(a resolved) done(a resolved)"},
		{"a silence while it is in flight", "fire a; take; silence a; ok; wait 2m; take; end a; take; ok",
			"send(a firing) done(a firing) done(a firing) send(a resolved) done(a resolved)"},
		{"a silence that ends", "fire a; take; ok; silence a; fire a; take; ok",
			"send(a firing) done(a firing) done(a firing) send(a firing) done(a firing)"},
		{"full: the end that waits longest goes first", "fire a; take; ok; end a; fire b; fire c; fire d; take; ok",
			"send(a firing) done(a firing) drop(full) done(a resolved) send(b firing) send(c firing) send(d firing) done(b firing) done(c firing) done(d firing)"},
		{"full: no end to drop", "fire a; fire b; fire c; fire d; take",
			"drop(full) done(d firing) send(a firing) send(b firing) send(c firing)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := script(newBook(start, 3, time.Minute, nil), test.steps)
			if got != test.want {
				t.Errorf("%s\n got %s\nwant %s", test.steps, got, test.want)
			}
		})
	}
}

// Whatever the order of events, the receiver ends with the newest state of each alert, it gets no end
// of what it cannot know, and each notification is finished once.
func TestTheReceiverEndsWithTheNewestState(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newBook(start, 100, time.Minute*time.Duration(random.IntN(2)), func(string) {})
		now := start
		newest, receiver := map[string]alert.State{}, map[string]alert.State{}
		perhaps := map[string]bool{} // a try failed, and may have arrived as far as the sender knows
		put, finished := 0, 0
		arrive := func(raised alert.Alert) {
			if raised.State == alert.Resolved && receiver[raised.Fingerprint] == "" && !perhaps[raised.Fingerprint] {
				t.Fatalf("seed %d: an end arrives without a firing", seed)
			}
			receiver[raised.Fingerprint] = raised.State
		}
		note := func(n engine.Notification) {
			put++
			n.Done = func() { finished++ }
			newest[n.Alert.Fingerprint] = n.Alert.State
			b.put(n, now)
		}
		fired := map[string]time.Time{}
		step := func(calm bool) {
			batch := b.take(1+random.IntN(3), now)
			if !calm && random.IntN(2) == 0 { // something happens while it is in flight
				change(random, note, newest, fired, now)
			}
			o := outcome(random.IntN(4))
			if calm || o == refused {
				o = delivered
			}
			for _, alert := range batch {
				perhaps[alert.Fingerprint] = perhaps[alert.Fingerprint] || o == failed
				if o == delivered || o == failed && random.IntN(2) == 0 {
					arrive(alert)
				}
				b.settle(alert, o, now)
			}
		}
		for range 30 {
			now = now.Add(time.Duration(random.IntN(30)) * time.Second)
			change(random, note, newest, fired, now)
			step(false)
		}
		for b.waiting.Len() > 0 {
			step(true)
		}
		for name, state := range newest {
			if got := receiver[name]; got != state && !(state == alert.Resolved && got == "") {
				t.Fatalf("seed %d: the receiver has %s as %q, want %q", seed, name, got, state)
			}
		}
		for _, done := range b.finished {
			done()
		}
		if finished != put {
			t.Fatalf("seed %d: %d of %d notifications are finished", seed, finished, put)
		}
	}
}

// change lets one of three alerts fire or end.
func change(random *rand.Rand, note func(engine.Notification), newest map[string]alert.State, fired map[string]time.Time, now time.Time) {
	name := string(rune('a' + random.IntN(3)))
	if newest[name] == alert.Firing {
		note(resolved(name, fired[name], now))
		return
	}
	fired[name] = now
	note(firing(name, now))
}
