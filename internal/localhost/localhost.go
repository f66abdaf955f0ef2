// Package localhost protects servers on loopback addresses from the pages of other sites.
package localhost

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	lines "github.com/statusd/statusd/internal/text"
)

// maxEcho bounds how much of a request an error repeats.
const maxEcho = 200

// Only keeps pages of other sites from reading the node through the browser of a user of this
// machine. A site whose name is made to resolve to 127.0.0.1 (DNS rebinding) still sends its own name
// as Host. Requests over a Unix socket come from no browser. refuse answers with status 403.
func Only(next http.Handler, refuse func(w http.ResponseWriter, why string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("X-Frame-Options", "DENY")
		if !OverUnixSocket(r) {
			if !IsLoopback(r.Host) {
				refuse(w, "host "+Short(r.Host)+": this is served for localhost, 127.0.0.1 and [::1] only")
				return
			}
			if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
				refuse(w, "pages of other sites may not read this")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// OverUnixSocket reports whether a request came over a Unix socket.
func OverUnixSocket(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && address.Network() == "unix"
}

// IsLoopback reports whether a Host header names this machine and nothing else.
func IsLoopback(host string) bool {
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

// Short cuts a part of a request for an error message.
func Short(text string) string {
	return strconv.Quote(lines.Cut(text, maxEcho))
}
