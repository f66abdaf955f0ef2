package api

import (
	"net"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Guard keeps pages of other sites from reading the node through the browser of a user of this
// machine. A site whose name is made to resolve to 127.0.0.1 (DNS rebinding) still sends its own name
// as Host. Requests over a Unix socket come from no browser.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("X-Frame-Options", "DENY")
		if !overUnixSocket(r) {
			if !isLoopback(r.Host) {
				fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "host %s: this is served for localhost, 127.0.0.1 and [::1] only", short(r.Host))
				return
			}
			if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
				fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "pages of other sites may not read this")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func overUnixSocket(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && address.Network() == "unix"
}

// isLoopback reports whether a Host header names this machine and nothing else.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
