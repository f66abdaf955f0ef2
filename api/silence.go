package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits on a silence.
const (
	maxMatchers   = 32
	maxMatcher    = 1 << 10 // bytes of a name or value
	maxComment    = 4 << 10
	maxBy         = 256
	maxSilence    = 366 * 24 * time.Hour
	maxSilenceIDs = 128 // bytes of an ID
)

// onlyOnSocket lets a write through if it came over the Unix socket, which only the user of the server
// can open. A TCP port of the machine is open to all of its users, and to the pages in their browsers.
// No browser speaks to a Unix socket, so a request with the marks of one was passed on by a program
// that should not.
func onlyOnSocket(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request, values map[string]string) {
		switch {
		case !overUnixSocket(r):
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "this is served on the Unix socket only, which its owner can open: use statusd silence on the node, or curl --unix-socket")
		case !isLoopback(r.Host):
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "host %s: want localhost", short(r.Host))
		case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "pages may not change this")
		default:
			next(w, r, values)
		}
	}
}

func (s *Server) addSilence(w http.ResponseWriter, r *http.Request, _ map[string]string) {
	if s.options.Alerts == nil {
		absent(w, noRules)
		return
	}
	silence, ok := readSilence(w, r)
	if !ok {
		return
	}
	if err := silence.Check(time.Now()); err != nil {
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "silence: %v", err)
		return
	}
	silence.ID, silence.Created = "", time.Time{}
	stored, err := s.options.Alerts.Silence(silence)
	if err != nil {
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "silence: %v", err)
		return
	}
	answer(w, http.StatusOK, stored)
}

// readSilence reads a silence from a request, and answers with an error if it is none. A matcher without
// isEqual is one for equal, as in Alertmanager's API.
func readSilence(w http.ResponseWriter, r *http.Request) (silence Silence, ok bool) {
	var body struct {
		Silence
		Matchers []struct {
			Matcher
			IsEqual *bool `json:"isEqual"`
		} `json:"matchers"`
	}
	if !readBody(w, r, "silence", &body) {
		return silence, false
	}
	silence = body.Silence
	for _, m := range body.Matchers {
		m.Matcher.IsEqual = m.IsEqual == nil || *m.IsEqual
		silence.Matchers = append(silence.Matchers, m.Matcher)
	}
	return silence, true
}

func (s *Server) expireSilence(w http.ResponseWriter, _ *http.Request, values map[string]string) {
	id := values["id"]
	if s.options.Alerts == nil {
		absent(w, noRules)
		return
	}
	if id == "" || len(id) > maxSilenceIDs {
		badRequest(w, "id %s: want that of a silence, as /apis/v1/silences lists them", short(id))
		return
	}
	switch err := s.options.Alerts.Expire(id); {
	case errors.Is(err, ErrNoSilence):
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no silence %s; /apis/v1/silences lists those that there are", short(id))
	case err != nil:
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "silence %s: %v", short(id), err)
	default:
		answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusOK, Message: "the silence has ended"})
	}
}

// Check returns what is wrong with a silence that is to begin now: which field, and what to write there.
func (s *Silence) Check(now time.Time) error {
	switch {
	case len(s.Matchers) == 0:
		return errors.New("matchers: there are none; name at least one label, such as alertname=KubePodNotReady")
	case len(s.Matchers) > maxMatchers:
		return fmt.Errorf("matchers: %d are too many, want at most %d", len(s.Matchers), maxMatchers)
	case s.Until.IsZero():
		return errors.New("until: is missing; say when the silence ends, such as 2026-01-02T15:04:05Z")
	case !s.Until.After(now):
		return fmt.Errorf("until: %s is not in the future; it is %s", s.Until.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case s.Until.Sub(now) > maxSilence:
		return fmt.Errorf("until: %s is more than a year away; a rule that should never warn is better removed", s.Until.Format(time.RFC3339))
	case strings.TrimSpace(s.Comment) == "":
		return errors.New("comment: is empty; say why the alerts are silenced")
	case len(s.Comment) > maxComment:
		return fmt.Errorf("comment: %d bytes are too many, want at most %d", len(s.Comment), maxComment)
	case strings.TrimSpace(s.By) == "":
		return errors.New("by: is empty; say who silences the alerts")
	case len(s.By) > maxBy:
		return fmt.Errorf("by: %d bytes are too many, want at most %d", len(s.By), maxBy)
	}
	for i, m := range s.Matchers {
		if err := m.check(); err != nil {
			return fmt.Errorf("matchers[%d]: %w", i, err)
		}
	}
	if !slices.ContainsFunc(s.Matchers, func(m Matcher) bool { return !m.Matches("") }) {
		return errors.New("matchers: together they match every alert; add one that an alert without the label does not match")
	}
	return nil
}
