package kubeletapi

import (
	"fmt"
	"net/http"
	"time"
)

// refusedTimeout is how long the connection of a refused client may stay open.
const refusedTimeout = time.Second

// door lets only requests pass whose user is known and has the right for the path. Texts and codes are the
// kubelet's.
func (s *Server) door(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, err := s.who.authenticate(request)
		if err != nil {
			s.log.Debug("request not authenticated", "client", request.RemoteAddr, "path", request.URL.Path, "err", err)
			w.Header().Set("Connection", "close") // keep places for authenticated clients
			// A body that is announced but never sent would keep the connection open. Some writers, as in tests, have no
			// deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedTimeout))
			answer(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		trust(request)
		wanted := AttributesOf(request.Method, request.URL.Path)
		allowed, undecided, err := s.may.authorize(request.Context(), user, wanted)
		switch {
		case err != nil:
			s.log.Warn("request not authorized: no decision", "user", user.Username, "verb", wanted.Verb, "subresource", undecided, "err", err)
			answer(w, http.StatusInternalServerError, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)",
				user.Username, wanted.Verb, undecided))
		case !allowed:
			s.log.Info("request forbidden", "user", user.Username, "verb", wanted.Verb, "subresources", wanted.Subresources, "client", request.RemoteAddr)
			answer(w, http.StatusForbidden, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)\n",
				user.Username, wanted.Verb, wanted.Subresources))
		default:
			next.ServeHTTP(w, request)
		}
	})
}

// answer is a status and a text as it is.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client may have gone
}
