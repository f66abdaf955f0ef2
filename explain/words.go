package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// longest is how much of a message of another program is shown.
const longest = 200

// shorten makes one line of limited length of what another program said.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= longest {
		return text
	}
	end := longest
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// quote quotes a name or a message.
func quote(text string) string { return strconv.Quote(text) }

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	return list(quoted)
}

// list joins as a person would: "a, b and c".
func list(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}

// detail appends a message of another program, if there is one.
func detail(message string) string {
	if message = shorten(message); message == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(message, ".")
}

// said is what a warning says, in one line.
func said(w *Warning) string {
	message := strings.TrimSuffix(shorten(w.Message), ".")
	switch {
	case message == "" && w.Reason == "":
		return "the node has given a warning without a reason"
	case message == "":
		return shorten(w.Reason)
	default:
		return message
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// times says how often: "once", "14 times".
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// span says how long, in at most two units: "38 s", "2 min 5 s", "3 h 2 min", "4 d".
func span(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	days, hours := int(d/(24*time.Hour)), int(d/time.Hour)%24
	minutes, secs := int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case days > 0 && hours > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case days > 0:
		return fmt.Sprintf("%d d", days)
	case hours > 0 && minutes > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case hours > 0:
		return fmt.Sprintf("%d h", hours)
	case minutes > 0 && secs > 0:
		return fmt.Sprintf("%d min %d s", minutes, secs)
	case minutes > 0:
		return fmt.Sprintf("%d min", minutes)
	default:
		return fmt.Sprintf("%d s", secs)
	}
}

// since says for how long: " for 2 min", nothing if the beginning is not known or not past.
func since(now, begin time.Time) string {
	if begin.IsZero() || !now.After(begin) {
		return ""
	}
	return " for " + span(now.Sub(begin))
}

// at says how long ago: " 38 s ago", nothing if that is not known.
func at(now, then time.Time) string {
	if then.IsZero() || then.After(now) {
		return ""
	}
	return " " + span(now.Sub(then)) + " ago"
}

// in says when: "in 38 s".
func in(now, then time.Time) string { return "in " + span(then.Sub(now)) }

// target says what a probe asks: " (GET http :8080/healthz)".
func target(c *v1.Container, p *v1.Probe) string {
	switch {
	case p == nil:
		return ""
	case p.HTTPGet != nil:
		scheme := strings.ToLower(string(p.HTTPGet.Scheme))
		if scheme == "" {
			scheme = "http"
		}
		path := p.HTTPGet.Path
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		return fmt.Sprintf(" (GET %s://%s:%s%s)", scheme, p.HTTPGet.Host, port(c, p.HTTPGet.Port), path)
	case p.TCPSocket != nil:
		return fmt.Sprintf(" (TCP %s:%s)", p.TCPSocket.Host, port(c, p.TCPSocket.Port))
	case p.GRPC != nil:
		return fmt.Sprintf(" (gRPC :%d)", p.GRPC.Port)
	case p.Exec != nil:
		return " (" + shorten(strings.Join(p.Exec.Command, " ")) + ")"
	default:
		return ""
	}
}

func port(c *v1.Container, p intstr.IntOrString) string {
	if p.Type == intstr.Int {
		return p.String()
	}
	for _, named := range c.Ports {
		if named.Name == p.StrVal {
			return strconv.Itoa(int(named.ContainerPort))
		}
	}
	return p.StrVal
}

// adviceForProbe is what to do about a probe that fails, by its last answer.
func adviceForProbe(c Cause, kind string) string {
	switch text := strings.ToLower(c.Text); {
	case strings.Contains(text, "connection refused"):
		return "check that the container listens on the port that is probed"
	case strings.Contains(text, "deadline exceeded"), strings.Contains(text, "timeout"), strings.Contains(text, "timed out"):
		return "find out why the container answers slowly, or raise timeoutSeconds"
	case strings.Contains(text, "statuscode"), strings.Contains(text, "status code"):
		return "read the container's log for why it answers so"
	case strings.Contains(text, "no such host"), strings.Contains(text, "no route"):
		return "check the probe's host"
	case strings.Contains(text, "has not succeeded yet"):
		return ""
	default:
		return "read the container's log"
	}
}
