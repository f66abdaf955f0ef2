package apiside

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/audit/internal/answer"
)

func TestFakeServer(t *testing.T) {
	apiCases(t, func(t *testing.T) control { return newFakeAPI(t) })
}

// A server that refuses is not one without pods.
func TestRefusals(t *testing.T) {
	for code, want := range map[int]string{401: "check that the client certificate or the token is valid", 403: "needs the right list and watch on pods", 503: "as the test wants"} {
		f := newFakeAPI(t)
		uid := f.put("stays", "n1")
		w := watchSide(t, Options{Config: f.config(), Node: "n1"})
		w.Await("a pod", func(a audit.API) bool { return known(a) && has(a, uid) })
		f.set(func() {
			f.fault = func(r *http.Request) int { return map[bool]int{true: code}[r.URL.Path == podsPath] }
		})
		f.down()
		f.up()
		facts := w.Await("a refusal", func(a audit.API) bool { return strings.Contains(a.APIAnswer.Err, want) })
		if !has(facts, uid) {
			t.Errorf("%d: got %+v, want what it said last", code, facts)
		}
		f.set(func() { f.fault = nil })
		w.Await("an answer", known)

		f.set(func() { f.fault = func(*http.Request) int { return code } })
		fresh := watchSide(t, Options{Config: f.config(), Node: "n1"})
		facts = fresh.Await("a refusal", func(a audit.API) bool { return !a.APIAnswer.Silent.IsZero() })
		if facts.APIAnswer.Known() || facts.APIPods != nil || !facts.APIAnswer.At.IsZero() {
			t.Errorf("%d: got %+v, want nothing to be known", code, facts)
		}
	}
}

// A server that takes requests and answers none is noticed: the first list has a bound.
func TestAServerThatHangs(t *testing.T) {
	f := newFakeAPI(t)
	f.set(func() { f.fault = func(*http.Request) int { return -1 } })
	w := watchSide(t, Options{Config: f.config(), Node: "n1", Timeout: 100 * time.Millisecond})
	w.Await("silence", func(a audit.API) bool { return strings.Contains(a.APIAnswer.Err, "no answer within 100ms") })
	f.set(func() { f.fault = nil })
	w.Await("an answer", known)
}

// A watch that stays open and shows nothing is noticed by a confirmation.
func TestADeafWatchIsNoticed(t *testing.T) {
	f := newFakeAPI(t)
	gone, stays := f.put("gone", "n1"), f.put("stays", "n1")
	w := watchSide(t, Options{Config: f.config(), Node: "n1", Logger: slog.New(slog.DiscardHandler)})
	w.Await("two pods", func(a audit.API) bool { return known(a) && has(a, gone) && has(a, stays) })
	f.set(func() { f.deaf = true })
	f.remove("gone")
	f.say("stays", "changed")
	late := f.put("late", "n1")
	w.Side.Confirm()
	w.Await("all of it", func(a audit.API) bool {
		return known(a) && !has(a, gone) && has(a, late) && a.APIPods[stays].Pod.Status.Message == "changed"
	})
}

// A watch on which nothing comes, not even a bookmark, is given up.
func TestASilentWatchIsGivenUp(t *testing.T) {
	f := newFakeAPI(t)
	w := watchSide(t, Options{Config: f.config(), Node: "n1", Quiet: 50 * time.Millisecond, Confirm: time.Hour})
	w.Await("an answer", known)
	watches := w.Side.Requests()["WATCH"]
	for w.Side.Requests()["WATCH"] < watches+3 {
		time.Sleep(time.Millisecond)
	}
	w.Await("an answer", known) // it is no silence of the server, which answers lists
}

// The server does not answer a confirmation though the watch is open: it is unknown until it does, or shows something.
func TestAConfirmationThatFails(t *testing.T) {
	f := newFakeAPI(t)
	w := watchSide(t, Options{Config: f.config(), Node: "n1", Timeout: 100 * time.Millisecond})
	w.Await("an answer", known)
	f.set(func() {
		f.fault = func(r *http.Request) int {
			return map[bool]int{true: -1}[r.URL.Path == podsPath && r.URL.Query().Get("watch") == ""]
		}
	})
	w.Side.Confirm()
	w.Await("silence", func(a audit.API) bool { return strings.Contains(a.APIAnswer.Err, "confirm pods") })
	for silent(w.Side.Facts()) { // confirmations go on to fail meanwhile
		f.bookmark()
		time.Sleep(time.Millisecond)
	}
	w.Side.Confirm()
	w.Await("silence", silent)
	f.set(func() { f.fault = nil })
	w.Await("a confirmation", known)
}

// A server that hangs answers nothing on connections that stay open. The reads of the lease show so, long before a watch is missed.
func TestSide_ServerThatHangsIsSilent(t *testing.T) {
	f := newFakeAPI(t)
	f.renew("holder")
	w := watchSide(t, Options{Config: f.config(), Node: "n1", Timeout: 100 * time.Millisecond, LeasePace: 10 * time.Millisecond, Quiet: time.Hour, Confirm: time.Hour})
	w.Await("an answer", known)
	f.set(func() {
		f.fault = func(r *http.Request) int { return map[bool]int{true: -1}[r.URL.Query().Get("watch") == ""] }
	})
	w.Await("silence", func(a audit.API) bool {
		return silent(a) && strings.Contains(a.APIAnswer.Err, "get lease of node n1: no answer within 100ms")
	})
	f.set(func() { f.fault = nil })
	w.Await("an answer", known)
}

// The Node authorizer lets a node read its lease, but not watch it.
func TestALeaseThatMayNotBeWatchedIsRead(t *testing.T) {
	f := newFakeAPI(t)
	f.renew("holder")
	f.set(func() {
		f.fault = func(r *http.Request) int { return map[bool]int{true: 403}[r.URL.Path == leasesPath] }
	})
	w := watchSide(t, Options{Config: f.config(), Node: "n1"})
	facts := w.Await("a lease", func(a audit.API) bool { return known(a) && a.Lease != nil })
	if *facts.Lease.Spec.HolderIdentity != "holder" {
		t.Errorf("got %+v", facts.Lease)
	}
	if watches := w.Side.Requests()["WATCH"]; watches > 4 {
		t.Errorf("got %d watches, want none again that is forbidden", watches)
	}
}

// A server that has just started refuses everything, before it knows the roles. A user that may watch leases and not get
// one is then let in again.
func TestAServerThatRefusesEverythingForAMoment(t *testing.T) {
	f := newFakeAPI(t)
	f.renew("holder")
	refusals := make(chan struct{}, 1000)
	f.set(func() {
		f.fault = func(r *http.Request) int {
			single := strings.HasPrefix(r.URL.Path, leasesPath+"/")
			if single {
				refusals <- struct{}{}
			}
			return map[bool]int{true: 403}[strings.HasPrefix(r.URL.Path, leasesPath)]
		}
	})
	w := watchSide(t, Options{Config: f.config(), Node: "n1"})
	<-refusals
	f.set(func() {
		f.fault = func(r *http.Request) int {
			return map[bool]int{true: 403}[strings.HasPrefix(r.URL.Path, leasesPath+"/")]
		}
	})
	w.Await("a lease", func(a audit.API) bool { return known(a) && a.Lease != nil })
}

func TestTheClockOfTheServer(t *testing.T) {
	for _, ahead := range []time.Duration{2 * time.Minute, -2 * time.Minute, 0} {
		f := newFakeAPI(t)
		f.set(func() { f.ahead = ahead })
		w := watchSide(t, Options{Config: f.config(), Node: "n1"})
		facts := w.Await("an answer", known)
		if facts.ClockAt.IsZero() || (facts.Clock-ahead).Abs() > facts.ClockError {
			t.Errorf("got %v ± %v, want %v", facts.Clock, facts.ClockError, ahead)
		}
	}
}

func TestMeasurements(t *testing.T) {
	sent := time.Now()
	date := sent.Add(time.Minute).UTC().Format(http.TimeFormat)
	if m, ok := measure(sent, sent.Add(200*time.Millisecond), date); !ok || (m.ahead-time.Minute).Abs() > m.err || m.err != 600*time.Millisecond {
		t.Errorf("got %+v, %t", m, ok)
	}
	for _, date := range []string{"", "yesterday"} {
		if _, ok := measure(sent, sent, date); ok {
			t.Errorf("%q: measured", date)
		}
	}

	c := &clock{requests: map[string]uint64{}}
	at := func(s int) time.Time { return sent.Add(time.Duration(s) * time.Second) }
	for _, step := range []struct {
		name string
		m    measurement
		want time.Duration
	}{
		{"the first", measurement{time.Second, 2 * time.Second, at(0)}, time.Second},
		{"a better one", measurement{2 * time.Second, time.Second, at(1)}, 2 * time.Second},
		{"a worse one", measurement{3 * time.Second, 2 * time.Second, at(2)}, 2 * time.Second},
		{"a worse one that contradicts", measurement{time.Minute, 2 * time.Second, at(3)}, time.Minute},
		{"a worse one, later", measurement{61 * time.Second, 5 * time.Second, at(300)}, 61 * time.Second},
	} {
		c.add(step.m)
		if got := c.measurement().ahead; got != step.want {
			t.Errorf("%s: got %v, want %v", step.name, got, step.want)
		}
	}
}

// An outage is news once, however often the server is tried.
func TestAnOutageIsOneChange(t *testing.T) {
	f := newFakeAPI(t)
	var mu sync.Mutex
	changes := map[string]int{}
	var side *Side
	side, err := New(Options{Config: f.config(), Node: "n1", Changed: func(types.UID) {
		mu.Lock()
		defer mu.Unlock()
		changes[side.Facts().APIAnswer.Err]++
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		side.pods.failed("watch", &url.Error{Op: "Get", URL: fmt.Sprint(f.config().Host, "?timeout=", rand.Int()), Err: errors.New("connection refused")})
	}
	if len(changes) != 1 || changes["watch pods of node n1: connection refused"] != 1 {
		t.Errorf("got %v, want one change", changes)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	if _, err := New(Options{Quiet: -1}); err == nil || !strings.Contains(err.Error(), "no Config") || !strings.Contains(err.Error(), "no Node") || !strings.Contains(err.Error(), "negative") {
		t.Errorf("got %v", err)
	}
}

// A pod that cannot be told apart from others makes the answer incomplete, and loses none of the others.
func TestAPodWithoutAUID(t *testing.T) {
	f := newFakeAPI(t)
	uid := f.put("stays", "n1")
	o := Options{Config: f.config(), Node: "n1", Quiet: time.Second}
	w := watchSide(t, o)
	w.Await("a pod", func(a audit.API) bool { return known(a) && has(a, uid) })
	odd := pod("odd", "n1")
	odd.UID = ""
	f.store(podsPath, odd, "ADDED")
	facts := w.Await("an error", func(a audit.API) bool { return strings.Contains(a.APIAnswer.Err, "without a UID, ns/odd") })
	if !has(facts, uid) || len(facts.APIPods) != 1 {
		t.Errorf("got %+v", facts.APIPods)
	}
	fresh := watchSide(t, o)
	if facts := fresh.Await("an error", func(a audit.API) bool { return strings.Contains(a.APIAnswer.Err, "without a UID, ns/odd") }); facts.APIPods != nil {
		t.Errorf("got %+v, want nothing of an answer that is not whole", facts.APIPods)
	}
	f.set(func() { delete(f.objects[podsPath], "odd") })
	w.Await("an answer", known)
	if facts := fresh.Await("an answer", known); !has(facts, uid) {
		t.Errorf("got %+v", facts.APIPods)
	}
}

// A server that ends each watch with "too old" is not current.
func TestAWatchThatDoesNotBegin(t *testing.T) {
	f := newFakeAPI(t)
	w := watchSide(t, Options{Config: f.config(), Node: "n1", Quiet: 100 * time.Millisecond, Confirm: time.Hour})
	w.Await("an answer", known)
	f.set(func() { f.fault = func(*http.Request) int { return 410 } })
	f.down()
	f.up()
	for !strings.Contains(w.Side.Facts().APIAnswer.Err, "no other has begun") {
		time.Sleep(time.Millisecond)
	}
	f.set(func() { f.fault = nil })
	w.Await("an answer", known)
}

// A watch that has missed one change of a pod is noticed though it knows all pods.
func TestASilentChangeIsMissed(t *testing.T) {
	f := newFakeAPI(t)
	uid := f.put("changes", "n1")
	w := watchSide(t, Options{Config: f.config(), Node: "n1"})
	w.Await("a pod", func(a audit.API) bool { return known(a) && has(a, uid) })
	f.set(func() { f.deaf = true })
	f.say("changes", "unseen")
	w.Side.Confirm()
	w.Await("the change", func(a audit.API) bool { return a.APIPods[uid].Pod.Status.Message == "unseen" })
}

// A refusal is logged once, though a reflector tries list and watch by turns, and again after an answer.
func TestARefusalIsLoggedOnce(t *testing.T) {
	var lines bytes.Buffer
	st := &stream{what: "pods of node n1", right: "list and watch on pods", record: answer.New("server")}
	st.side = &Side{log: slog.New(slog.NewTextHandler(&lines, nil))}
	st.side.options.Changed = func(types.UID) {}
	logged := func() int { return strings.Count(lines.String(), "does not answer") }
	refused := func() {
		for _, verb := range []string{"watch", "list", "watch", "list"} {
			st.doubt(verb, apierrors.NewForbidden(v1.Resource("pods"), "", errors.New("cannot "+verb)), true)
		}
	}
	if refused(); logged() != 1 {
		t.Errorf("%d lines, want 1:\n%s", logged(), &lines)
	}
	if st.doubt("list", apierrors.NewUnauthorized("expired"), true); logged() != 2 {
		t.Errorf("%d lines, want another one for another reason:\n%s", logged(), &lines)
	}
	st.record.Good(time.Now())
	if refused(); logged() != 3 {
		t.Errorf("%d lines, want another one after an answer:\n%s", logged(), &lines)
	}
	st.record.Good(time.Now())
	if refused(); logged() != 4 {
		t.Errorf("%d lines, want another one after the next answer:\n%s", logged(), &lines)
	}
}
