// Package doctor examines a machine, a config, rights and versions before statusd runs there, or when it does not work: one finding per
// check, with what to do. It changes nothing except a file in the state directory, which it removes.
package doctor

import (
	"context"
	"strings"
	"time"

	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// Result is the outcome of a check.
type Result string

// The outcomes. Skipped: the check could not be made, or does not apply.
const (
	OK      Result = "ok"
	Warning Result = "warning"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Result Result `json:"result"`
	Found  string `json:"found"`
	// Do is the advice if the result is neither OK nor Skipped.
	Do string `json:"do,omitempty"`
}

// Subject is the examined process: its config and requirements.
type Subject struct {
	NodeName string
	StateDir string
	// Root is whether the process needs to be root, and Cgroups whether it makes control groups.
	Root, Cgroups bool
	// ConfigProblem is the error of the config, or nil.
	ConfigProblem error
	// Client is the config for the API server, nil without one; ClientProblem is why the client could not be made.
	Client        *rest.Config
	ClientProblem error
	// Rights are checked one by one.
	Rights []authorization.ResourceAttributes
	// OwnsLease is whether the process renews the lease of the node: then no other process may.
	OwnsLease bool
	// RuntimeEndpoint is the CRI socket, empty if none is used.
	RuntimeEndpoint string
	// Addresses are the addresses that the process listens on; Socket is the query socket of a running
	// one.
	Addresses []string
	Socket    string
	// Unit is the name of the systemd unit.
	Unit string
}

// patience bounds each request.
const patience = 5 * time.Second

// Examine makes all checks, one after the other.
func Examine(ctx context.Context, s Subject) []Finding {
	e := examination{Subject: s, ctx: ctx}
	e.config()
	e.running()
	e.kernel()
	e.user()
	e.controlGroups()
	e.state()
	e.ports()
	e.unit()
	e.runtime()
	e.server()
	return e.findings
}

// Worst is whether a check has failed.
func Worst(findings []Finding) Result {
	worst := OK
	for _, f := range findings {
		if f.Result == Failed || f.Result == Warning && worst == OK {
			worst = f.Result
		}
	}
	return worst
}

// examination collects the findings about a subject.
type examination struct {
	Subject
	ctx      context.Context
	runs     bool // a statusd answers on the socket
	findings []Finding
}

func (e *examination) add(check string, result Result, found, do string) {
	if result == OK || result == Skipped {
		do = ""
	}
	e.findings = append(e.findings, Finding{Check: check, Result: result, Found: found, Do: do})
}

func (e *examination) config() {
	if e.ConfigProblem != nil {
		problems := strings.Split(e.ConfigProblem.Error(), "\n")
		for i := range problems[1:] {
			problems[i+1] = strings.TrimPrefix(problems[i+1], "config: ")
		}
		e.add("config", Failed, strings.Join(problems, "; "), "correct the config file; statusd config default prints every setting")
		return
	}
	e.add("config", OK, "valid, node "+e.NodeName, "")
}
