package explain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/statusd/statusd/internal/text"
)

// longest is how much of a message of another program is shown.
const longest = 240

// shorten makes one line of limited length of what another program said: its head, which names what failed, and its tail,
// which names why.
func shorten(message string) string { return shortenTo(message, longest) }

func shortenTo(message string, limit int) string {
	message = text.Line(message)
	if strings.Contains(message, "rpc error") {
		message = wrapped.ReplaceAllString(message, "")
	}
	return text.Ends(message, limit)
}

// wrapped is what gRPC puts before each error that a runtime or a driver passes on.
var wrapped = regexp.MustCompile(`rpc error: code = \w+ desc = `)

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
	message := w.Message
	if _, why, ok := strings.Cut(message, ": error processing PVC "); ok { // what comes before only lists volumes
		message = "PersistentVolumeClaim " + why
	}
	message = strings.TrimSuffix(shorten(message), ".")
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

// since says for how long: " for 2 min", nothing if the beginning is not known or not past.
func since(now, begin time.Time) string {
	if begin.IsZero() || !now.After(begin) {
		return ""
	}
	return " for " + text.Span(now.Sub(begin))
}

// begun says since how long something goes on: ", since 38 s", nothing if that is not known.
func begun(now, then time.Time) string {
	if said := at(now, then); said != "" {
		return ", begun" + said
	}
	return ""
}

// at says how long ago: " 38 s ago", nothing if that is not known.
func at(now, then time.Time) string {
	if then.IsZero() || then.After(now) {
		return ""
	}
	return " " + text.Span(now.Sub(then)) + " ago"
}

// comma puts a comma before what is said, if something is.
func comma(said string) string {
	if said == "" {
		return ""
	}
	return "," + said
}

// in says when: "in 38 s".
func in(now, then time.Time) string { return "in " + text.Span(then.Sub(now)) }

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
	advice := adviceByAnswer(c, kind)
	if kind == "startup" && advice != "" && !strings.Contains(advice, "failureThreshold") {
		advice += "; if it only needs longer to start, raise failureThreshold of the probe"
	}
	return advice
}

func adviceByAnswer(c Cause, kind string) string {
	switch said := strings.ToLower(c.Text); {
	case strings.Contains(said, "connection refused"), strings.Contains(said, "failed to connect service"):
		return "check that the container listens on the port that is probed"
	case strings.Contains(said, "dial tcp") && strings.Contains(said, "i/o timeout"):
		return "check that the container accepts connections at the pod's address, and that no network policy or firewall drops connections of the node"
	case strings.Contains(said, "deadline exceeded"), strings.Contains(said, "timeout"), strings.Contains(said, "timed out"):
		return "find out why the container answers slowly, or raise timeoutSeconds"
	case strings.Contains(said, "grpc health protocol"):
		return "implement the gRPC health protocol in the server, or use another kind of probe"
	case strings.Contains(said, "http response to https client"), strings.Contains(said, "first record does not look like a tls handshake"):
		return "set scheme: HTTP in the probe: the server does not speak TLS"
	case strings.Contains(said, "statuscode: 400") && strings.Contains(said, "get http:"):
		return "if the server speaks HTTPS, set scheme: HTTPS in the probe; or read the container's log for why it answers so"
	case strings.Contains(said, "statuscode: 404"), strings.Contains(said, "status code 404"):
		return "correct the path of the probe, or have the server answer it"
	case strings.Contains(said, "statuscode: 401"), strings.Contains(said, "statuscode: 403"):
		return "have the server answer the path of the probe without credentials"
	case strings.Contains(said, "no such file or directory") && strings.Contains(said, "exec"), strings.Contains(said, "executable file not found"):
		return "install the command of the probe in the image, or correct its path"
	case strings.Contains(said, "statuscode"), strings.Contains(said, "status code"):
		return "read the container's log for why it answers so"
	case strings.Contains(said, "no such host"), strings.Contains(said, "no route"):
		return "check the probe's host"
	case strings.Contains(said, "has not succeeded yet"):
		return ""
	case kind == "startup":
		return "read the container's log; if it only needs longer to start, raise failureThreshold of the probe"
	default:
		return "read the container's log"
	}
}
