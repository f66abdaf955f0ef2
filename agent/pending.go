package agent

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/status"
)

// backlog is the body of /debug/pending: which statuses are not in the API yet and why, which
// statuses another writer keeps changing back, which static pods lack a mirror pod, and in which
// state the journal was found.
type backlog struct {
	Pending []pendingPod `json:"pending"`
	Fights  []fight      `json:"fights"`
	// Mirrors are the reasons why mirror pods are not up to date, by pod.
	Mirrors map[string]string `json:"mirrors,omitempty"`
	Journal journalRecovery   `json:"journal"`
}

type podName struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

type pendingPod struct {
	podName
	Version  uint64     `json:"version"`
	Accepted uint64     `json:"accepted"`
	Since    time.Time  `json:"since"`
	Attempts int        `json:"attempts,omitempty"`
	Error    string     `json:"error,omitempty"`
	NextTry  *time.Time `json:"nextTry,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Refused  []string   `json:"refused,omitempty"`
}

type fight struct {
	podName
	Writer string    `json:"writer"`
	Rounds int       `json:"rounds"`
	Last   time.Time `json:"last"`
}

type journalRecovery struct {
	Outcome     string    `json:"outcome"`
	Sequence    uint64    `json:"sequence"`
	AsOf        time.Time `json:"asOf"`
	MayHaveLost bool      `json:"mayHaveLost,omitempty"`
	Damage      []string  `json:"damage,omitempty"`
	MovedAside  []string  `json:"movedAside,omitempty"`
}

// pending returns the work of this agent that is outstanding in the API. Empty lists are not null.
func (a *Agent) pending() backlog {
	b := backlog{Pending: []pendingPod{}, Fights: []fight{}}
	for _, p := range a.manager.Pending() {
		b.Pending = append(b.Pending, pendingOf(&p))
	}
	for _, f := range a.manager.Fights() {
		b.Fights = append(b.Fights, fight{podName{f.Namespace, f.Name, f.UID}, f.Writer, f.Rounds, f.Last})
	}
	if a.mirrors != nil {
		b.Mirrors = map[string]string{}
		for name, err := range a.mirrors.Pending() {
			b.Mirrors[name] = err.Error()
		}
	}
	r := a.journal.Recovery()
	b.Journal = journalRecovery{string(r.Outcome), r.Sequence, r.AsOf, r.MayHaveLost, r.Damage, r.MovedAside}
	return b
}

func pendingOf(p *status.Pending) pendingPod {
	shown := pendingPod{
		podName: podName{p.Namespace, p.Name, p.UID}, Version: p.Version, Accepted: p.Accepted, Since: p.Since,
		Attempts: p.Attempts, Reason: p.Reason, Refused: p.Refused,
	}
	if p.Err != nil {
		shown.Error = p.Err.Error()
	}
	if !p.NextTry.IsZero() {
		shown.NextTry = &p.NextTry
	}
	return shown
}
