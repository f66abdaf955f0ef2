package queryapi

import (
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/alert"
	"github.com/statusd/statusd/internal/localhost"
)

// maxSilenceIDs is how many bytes the ID of a silence may have.
const maxSilenceIDs = 128

// onlyOnSocket lets a write through if it came over the Unix socket, which only the user of the server
// can open. A TCP port of the machine is open to all of its users, and to the pages in their browsers.
// No browser speaks to a Unix socket, so a request with the marks of one was passed on by a program
// that should not.
func onlyOnSocket(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request, values map[string]string) {
		switch {
		case !localhost.OverUnixSocket(r):
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "this is served on the Unix socket only, which its owner can open: use statusd silence on the node, or curl --unix-socket")
		case !localhost.IsLoopback(r.Host):
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "host %s: want localhost", localhost.Short(r.Host))
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

// readSilence reads a silence from a request, and answers with an error if the body is invalid. A
// matcher without isEqual matches equal values, as in Alertmanager's API.
func readSilence(w http.ResponseWriter, r *http.Request) (silence alert.Silence, ok bool) {
	var body struct {
		alert.Silence
		Matchers []struct {
			alert.Matcher
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
		badRequest(w, "id %s: want the id of a silence, as /apis/v1/silences lists them", localhost.Short(id))
		return
	}
	switch err := s.options.Alerts.Expire(id); {
	case errors.Is(err, alert.ErrNoSilence):
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no silence %s; /apis/v1/silences lists all", localhost.Short(id))
	case err != nil:
		fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "silence %s: %v", localhost.Short(id), err)
	default:
		answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Code: http.StatusOK, Message: "the silence has ended"})
	}
}
