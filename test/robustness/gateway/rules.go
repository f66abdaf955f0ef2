package gateway

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule is what happens to requests while it is set.
type Rule struct {
	Name string
	// Code is the status code that the agent is answered; 200 with a Body in place of the server's or, without one, with the server's cut in half.
	Code int
	Body string
	// Retry is the header Retry-After.
	Retry time.Duration
	// Before: the server does not get the request. Otherwise the server does, and its answer is lost.
	Before bool
	// Share of Shares: of the pods, by their names, that it is for; 0: all requests.
	Share, Shares uint32
	// Every how many of these requests it is for; 0 and 1: each.
	Every int
}

// rules are the rules that are set.
type rules struct {
	mu    *sync.Mutex // guards what follows
	set   map[string]Rule
	seen  map[string]int
	taken map[string]int
	watch *watchRules
}

func newRules() rules {
	return rules{mu: &sync.Mutex{}, set: map[string]Rule{}, seen: map[string]int{}, taken: map[string]int{}, watch: newWatchRules()}
}

// Set has a rule in effect until the returned function is called.
func (g *Gateway) Set(rule Rule) (unset func()) {
	g.rules.mu.Lock()
	defer g.rules.mu.Unlock()
	g.rules.set[rule.Name] = rule
	return func() {
		g.rules.mu.Lock()
		defer g.rules.mu.Unlock()
		delete(g.rules.set, rule.Name)
	}
}

// Taken is how many requests each rule was for.
func (g *Gateway) Taken() map[string]int {
	g.rules.mu.Lock()
	defer g.rules.mu.Unlock()
	taken := map[string]int{}
	for name, n := range g.rules.taken {
		taken[name] = n
	}
	return taken
}

// take returns a rule that is for the request.
func (r *rules) take(x *exchange) (Rule, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.watch {
		return Rule{}, false
	}
	for name, rule := range r.set {
		if !rule.isFor(x) {
			continue
		}
		r.seen[name]++
		if rule.Every > 1 && r.seen[name]%rule.Every != 0 {
			continue
		}
		r.taken[name]++
		return rule, true
	}
	return Rule{}, false
}

func (rule Rule) isFor(x *exchange) bool {
	return rule.Shares == 0 || x.Name != "" && rule.IsFor(x.Name)
}

// IsFor reports whether the rule is for requests of the pod of the name.
func (rule Rule) IsFor(name string) bool {
	if rule.Shares == 0 {
		return true
	}
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return sum.Sum32()%rule.Shares < rule.Share
}

// answer answers without the server.
func (rule Rule) answer(w http.ResponseWriter) {
	if rule.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(rule.Retry.Seconds())))
	}
	w.Header().Set("Content-Type", "application/json")
	body := []byte(rule.Body)
	if rule.Body == "" {
		body, _ = json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(rule.Code),
			Reason: reasons[rule.Code], Message: fmt.Sprintf("injected: %s", http.StatusText(rule.Code)),
		})
	}
	w.WriteHeader(rule.Code)
	_, _ = w.Write(body)
}

// replace answers in place of the server, which has done what was requested.
func (rule Rule) replace(w http.ResponseWriter, response *http.Response, body []byte) {
	if rule.Code != http.StatusOK || rule.Body != "" {
		rule.answer(w)
		return
	}
	send(w, response, body[:len(body)/2])
}

var reasons = map[int]metav1.StatusReason{
	401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 409: metav1.StatusReasonConflict, 413: metav1.StatusReasonRequestEntityTooLarge,
	422: metav1.StatusReasonInvalid, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
	504: metav1.StatusReasonTimeout,
}
