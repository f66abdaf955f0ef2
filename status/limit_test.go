//go:build !race

package status

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// serverModel is an API server for simulations: requests travel half a round trip, are served
// by so many processors in order of arrival, and travel back.
type serverModel struct {
	cores   int
	service time.Duration // of one processor for one request
	rtt     time.Duration
	jitter  time.Duration // of the round trip, at most, evenly spread
	queue   int           // requests that wait at the server before it answers 429; zero is no bound
	dead    bool          // answers nothing
	// shared is the part of the service that requests which wait at the same time have in common.
	shared float64
}

// When the client of the simulation gives a request up, and before that its slot.
const (
	requestTimeout = 30 * time.Second
	slowAfter      = 2 * time.Second
)

// simulation is a client with a limit and ever more work, and a server. All time is virtual.
type simulation struct {
	serverModel
	limit  *limit
	now    time.Time
	random *rand.Rand
	events eventHeap

	demand   int // requests that the client has to make, forever if negative
	inFlight int
	hanging  int
	serving  int
	backlog  []*simulated // waits at the server
	pause    time.Time

	finished int
	refused  int
	spent    time.Duration
}

type simulated struct {
	began time.Time
	among int
	done  bool
	hangs bool // holds no slot any more
}

type event struct {
	at time.Time
	do func()
	n  int
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, k int) bool {
	if c := h[i].at.Compare(h[k].at); c != 0 {
		return c < 0
	}
	return h[i].n < h[k].n
}
func (h eventHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newSimulation(model serverModel, ceiling int) *simulation {
	return &simulation{serverModel: model, limit: newLimit(ceiling, false, epoch), now: epoch, random: rand.New(rand.NewPCG(1, 2)), demand: -1}
}

func (s *simulation) after(d time.Duration, do func()) {
	heap.Push(&s.events, event{at: s.now.Add(d), do: do, n: int(s.random.Int32())})
}

// run lets time pass.
func (s *simulation) run(d time.Duration) {
	until := s.now.Add(d)
	s.limit.pass(s.now)
	s.launch()
	for len(s.events) > 0 && !s.events[0].at.After(until) {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
		s.launch()
	}
	s.now = until
}

// launch sends as many requests as the limit allows.
func (s *simulation) launch() {
	for s.inFlight < s.limit.allowed() && s.demand != 0 && !s.now.Before(s.pause) {
		s.inFlight++
		s.demand--
		r := &simulated{began: s.now, among: s.inFlight}
		s.after(s.halfTrip(), func() { s.arrive(r) })
		s.after(requestTimeout, func() {
			if !r.done {
				s.land(r)
				s.limit.timeout(r.began, s.now)
			}
		})
		s.after(slowAfter, func() {
			if !r.done && s.hanging < slowTurns {
				s.limit.hang(s.now, slowAfter)
				r.hangs = true
				s.hanging++
				s.inFlight--
			}
		})
	}
}

func (s *simulation) halfTrip() time.Duration {
	return s.rtt/2 + time.Duration(s.random.Float64()*float64(s.jitter)/2)
}

func (s *simulation) arrive(r *simulated) {
	switch {
	case s.dead:
	case s.serving < s.cores:
		s.serve(r)
	case s.queue > 0 && len(s.backlog) >= s.queue:
		s.after(s.halfTrip(), func() {
			s.land(r)
			s.refused++
			s.limit.overload(s.now)
			s.pause = s.now.Add(time.Second)
			s.after(time.Second, func() {})
		})
	default:
		s.backlog = append(s.backlog, r)
	}
}

func (s *simulation) serve(r *simulated) {
	s.serving++
	// Between half and one and a half times the mean.
	service := float64(s.service) * (1 - s.shared + s.shared/float64(1+len(s.backlog)))
	s.after(time.Duration((0.5+s.random.Float64())*service), func() {
		s.serving--
		if len(s.backlog) > 0 {
			next := s.backlog[0]
			s.backlog = s.backlog[1:]
			s.serve(next)
		}
		s.after(s.halfTrip(), func() { s.answered(r) })
	})
}

func (s *simulation) answered(r *simulated) {
	if r.done {
		return
	}
	full := s.inFlight >= s.limit.allowed()
	s.land(r)
	s.finished++
	s.spent += s.now.Sub(r.began)
	if !r.hangs {
		s.limit.sample(s.now, s.now.Sub(r.began), r.among, full)
	}
}

func (s *simulation) land(r *simulated) {
	r.done = true
	if r.hangs {
		s.hanging--
	} else {
		s.inFlight--
	}
}

// window runs for a while and returns what was seen: limit, requests a second, mean latency.
func (s *simulation) window(d time.Duration) (limit int, rate float64, latency time.Duration) {
	s.finished, s.refused, s.spent = 0, 0, 0
	s.run(d)
	if s.finished > 0 {
		latency = s.spent / time.Duration(s.finished)
	}
	return s.limit.allowed(), float64(s.finished) / d.Seconds(), latency
}

// capacity is how many requests a second the server can serve.
func (m serverModel) capacity() float64 { return float64(m.cores) / m.service.Seconds() }

// TestLimitTraces reads testdata/limit/*.txt: what becomes of the server, and how the limit
// follows. Run with -rewrite to record what it does now.
//
//	server cores=N service=D [rtt=D] [jitter=D] [queue=N] [dead] [ceiling=N]  the first one, or how it is from now on
//	run DURATION [every=D] [demand=N]                     requests without end, or so many
//	table                                                 limit found, by round trip and cores
func TestLimitTraces(t *testing.T) {
	datadriven.Walk(t, "testdata/limit", func(t *testing.T, path string) {
		var s *simulation
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "server":
				model, ceiling := scanServer(t, d)
				if s == nil {
					s = newSimulation(model, ceiling)
				}
				s.serverModel = model
				return ""
			case "run":
				return runTrace(t, s, d)
			case "table":
				return limitTable()
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

func scanServer(t *testing.T, d *datadriven.TestData) (serverModel, int) {
	model, ceiling := serverModel{dead: d.HasArg("dead")}, 200
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "cores":
			arg.Scan(t, 0, &model.cores)
		case "queue":
			arg.Scan(t, 0, &model.queue)
		case "ceiling":
			arg.Scan(t, 0, &ceiling)
		case "service":
			model.service = scanDuration(arg)
		case "rtt":
			model.rtt = scanDuration(arg)
		case "jitter":
			model.jitter = scanDuration(arg)
		}
	}
	return model, ceiling
}

func scanDuration(arg datadriven.CmdArg) time.Duration {
	d, err := time.ParseDuration(arg.Vals[0])
	must(err)
	return d
}

func runTrace(t *testing.T, s *simulation, d *datadriven.TestData) string {
	total := scanDuration(datadriven.CmdArg{Vals: []string{d.CmdArgs[0].Key}})
	every := total
	s.demand = -1
	for _, arg := range d.CmdArgs[1:] {
		switch arg.Key {
		case "every":
			every = scanDuration(arg)
		case "demand":
			arg.Scan(t, 0, &s.demand)
		}
	}
	var b strings.Builder
	for passed := every; passed <= total; passed += every {
		limit, rate, latency := s.window(every)
		fmt.Fprintf(&b, "%6.1fs  limit %3d  %5.0f/s  latency %s", s.now.Sub(epoch).Seconds(), limit, rate, latency.Round(time.Millisecond))
		if s.refused > 0 {
			fmt.Fprintf(&b, "  refused %d", s.refused)
		}
		b.WriteByte('\n')
	}
	s.demand = 0
	return b.String()
}

var (
	tableRTTs  = []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}
	tableCores = []int{1, 2, 4, 8, 16}
)

// limitTable is what the limit settles at, and what it costs and gives there.
func limitTable() string {
	var b strings.Builder
	b.WriteString("| round trip | cores | limit found | throughput | of what is possible | one request takes |\n|--:|--:|--:|--:|--:|--:|\n")
	for _, rtt := range tableRTTs {
		for _, cores := range tableCores {
			model := serverModel{cores: cores, service: 5 * time.Millisecond, rtt: rtt, jitter: rtt / 10}
			limit, rate, latency := settled(model, 200)
			possible := min(model.capacity(), 200/(rtt+model.jitter/2+model.service).Seconds())
			fmt.Fprintf(&b, "| %v | %d | %d | %.0f/s | %.0f %% | %v |\n", rtt, cores, limit, rate, 100*rate/possible, latency.Round(time.Millisecond))
		}
	}
	return b.String()
}

// settled lets the limit find its place and returns what is seen then.
func settled(model serverModel, ceiling int) (limit int, rate float64, latency time.Duration) {
	s := newSimulation(model, ceiling)
	s.demand = 3 // an idle server at first, as with a daemon that starts
	s.run(2 * time.Second)
	s.demand = -1
	s.run(10 * time.Second)
	return s.window(10 * time.Second)
}

func TestLimitFindsWhatPays(t *testing.T) {
	for _, rtt := range tableRTTs {
		for _, cores := range tableCores {
			model := serverModel{cores: cores, service: 5 * time.Millisecond, rtt: rtt, jitter: rtt / 10}
			limit, rate, latency := settled(model, 200)
			possible := min(model.capacity(), 200/(rtt+model.jitter/2+model.service).Seconds())
			if rate < 0.95*possible {
				t.Errorf("round trip %v, %d cores: limit %d gives %.0f requests a second of %.0f", rtt, cores, limit, rate, possible)
			}
			// With a core of its own a request takes the round trip and 5 ms; the queue adds what the
			// server takes for it, and noise a tenth of the round trip and more.
			queueing := time.Duration(1.5 * (limitQueue + float64(limit)/16) / possible * float64(time.Second))
			if most := rtt*5/4 + 3*model.service + queueing; latency > most {
				t.Errorf("round trip %v, %d cores: limit %d makes a request take %v, want at most %v", rtt, cores, limit, latency, most)
			}
		}
	}
}

// Whatever the server does, the limit is between its floor and its ceiling.
func TestLimitStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ceiling := rapid.IntRange(1, 300).Draw(t, "ceiling")
		now := epoch
		l := newLimit(ceiling, false, now)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "ms")) * time.Millisecond)
			took := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "took"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				l.overload(now)
			case 1:
				l.timeout(now.Add(-took), now)
			case 2:
				l.hang(now, took)
			case 3:
				l.pass(now)
			default:
				l.sample(now, took, rapid.IntRange(1, 300).Draw(t, "among"), rapid.Bool().Draw(t, "full"))
			}
			least := min(limitFloor, ceiling)
			if l.dip > 0 {
				least = min(quietFlights, ceiling)
			}
			if got := l.allowed(); got < least || got > ceiling {
				t.Fatalf("%d requests are allowed, want from %d to %d", got, least, ceiling)
			}
		}
	})
}

func TestLimitShrinksOncePerRoundTripWhenTheServerRefuses(t *testing.T) {
	l := newLimit(200, false, epoch)
	l.sample(epoch, 50*time.Millisecond, 1, false)
	for range 30 { // all that was in flight
		l.overload(after(time.Second))
	}
	if got := l.allowed(); got != 21 {
		t.Errorf("after 30 refusals at once %d are allowed, want 0.7 of the 30 that 50 ms suggest", got)
	}
	l.overload(after(2 * time.Second))
	if got := l.allowed(); got != 14 {
		t.Errorf("after another refusal %d are allowed, want 0.7 of 21", got)
	}
}

// A few pods whose requests hang say nothing of the server, if it answers others meanwhile.
func TestLimitIgnoresTimeoutsOfAServerThatAnswers(t *testing.T) {
	l := newLimit(200, false, epoch)
	l.sample(after(20*time.Second), 5*time.Millisecond, 1, false)
	l.timeout(after(0), after(30*time.Second))
	if got := l.allowed(); got != limitFirst {
		t.Errorf("%d are allowed, want %d: other requests were answered", got, limitFirst)
	}
	l.timeout(after(25*time.Second), after(55*time.Second))
	if got := l.allowed(); got >= limitFirst {
		t.Errorf("%d are allowed although nothing was answered for 30 s", got)
	}
}

// frontier is the work that the limit is compared with fixed numbers on: near and far servers, and servers that
// serve requests together which wait at the same time, as etcd commits them. Without a burst there is ever more work, and
// what counts is what the limit settles at; in a burst counts what the limit does before.
var frontier = map[string]struct {
	cores  int
	rtt    time.Duration
	shared float64
	burst  int
}{
	"near, 2 cores":            {cores: 2},
	"near, 8 cores":            {cores: 8},
	"50 ms away":               {cores: 2, rtt: 50 * time.Millisecond},
	"200 ms away":              {cores: 2, rtt: 200 * time.Millisecond},
	"near, commits share":      {cores: 2, shared: 0.4},
	"50 ms, commits share":     {cores: 2, shared: 0.4, rtt: 50 * time.Millisecond},
	"a burst near":             {cores: 2, shared: 0.3, burst: 500},
	"a burst 50 ms away":       {cores: 2, shared: 0.3, rtt: 50 * time.Millisecond, burst: 200},
	"a long burst 50 ms away":  {cores: 2, shared: 0.3, rtt: 50 * time.Millisecond, burst: 2000},
	"a burst 200 ms away":      {cores: 2, shared: 0.3, rtt: 200 * time.Millisecond, burst: 200},
	"a long burst 200 ms away": {cores: 2, shared: 0.3, rtt: 200 * time.Millisecond, burst: 2000},
}

// No fixed number in flight has both more throughput and less latency, but for noise.
func TestLimitIsOnTheFrontierOfFixedNumbers(t *testing.T) {
	for name, work := range frontier {
		model := serverModel{cores: work.cores, service: 3 * time.Millisecond, rtt: work.rtt, jitter: work.rtt / 10, shared: work.shared}
		rate, latency := served(model, newLimit(200, false, epoch), work.burst)
		best := 0.0
		for _, n := range []int{4, 8, 16, 48, 200} {
			fixedRate, fixedLatency := served(model, fixedLimit(n), work.burst)
			best = max(best, fixedRate)
			if fixedRate > 1.01*rate && fixedLatency < latency {
				t.Errorf("%s: %d in flight give %.0f/s at %v, the limit %.0f/s at %v", name, n, fixedRate, fixedLatency, rate, latency)
			}
			t.Logf("%s: %d in flight give %.0f/s at %v, the limit %.0f/s at %v", name, n, fixedRate, fixedLatency, rate, latency)
		}
		if rate, _ := served(model, newLimit(200, true, epoch), work.burst); rate < 0.95*best {
			t.Errorf("%s: with PreferThroughput %.0f/s, the best fixed number gives %.0f/s", name, rate, best)
		}
	}
}

// served returns the throughput and the mean latency of a burst of so many requests after a few, or without a burst of ever more.
func served(model serverModel, l *limit, burst int) (rate float64, latency time.Duration) {
	s := newSimulation(model, 200)
	s.limit = l
	s.demand = 3
	s.run(2 * time.Second)
	if burst > 0 {
		return s.burst(burst)
	}
	s.demand = -1
	s.run(10 * time.Second)
	_, rate, latency = s.window(10 * time.Second)
	return rate, latency
}

// burst serves so many requests.
func (s *simulation) burst(n int) (rate float64, latency time.Duration) {
	began := s.now
	s.demand, s.finished, s.spent = n, 0, 0
	for s.finished < n {
		s.run(time.Millisecond)
	}
	return float64(n) / s.now.Sub(began).Seconds(), s.spent / time.Duration(n)
}

// The first request may be slow, for example because it waits for its connection. The answers in the burst after it show that.
func TestLimitUnlearnsASlowFirstRequest(t *testing.T) {
	near := serverModel{cores: 2, service: 3 * time.Millisecond}
	burst := func(l *limit) time.Duration {
		s := newSimulation(near, 200)
		s.limit = l
		_, latency := s.burst(500)
		return latency
	}
	slow := newLimit(200, false, epoch)
	slow.sample(epoch, 100*time.Millisecond, 1, false)
	if latency, most := burst(slow), burst(fixedLimit(48)); latency > most {
		t.Errorf("a request of a burst takes %v after a slow one, and %v with 48 in flight", latency, most)
	}
}

// fixedLimit allows the same number at all times.
func fixedLimit(n int) *limit {
	fixed := float64(n)
	return &limit{floor: fixed, first: fixed, ceiling: fixed, current: fixed, quiet: after(time.Hour), used: epoch, answered: epoch}
}
