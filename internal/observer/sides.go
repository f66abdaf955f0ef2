package observer

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
)

// Sides are the queried sides. Returned values are not changed afterwards.
type Sides struct {
	API     APISide
	Kubelet KubeletSide
	Runtime RuntimeSide
	Machine MachineSide
}

// APISide is the API server.
type APISide interface {
	Run(ctx context.Context) error
	Facts() audit.API
	// Confirm triggers a check whether its watch has missed a change.
	Confirm()
}

// KubeletSide is the kubelet.
type KubeletSide interface {
	Run(ctx context.Context) error
	Facts() audit.Kubelet
	// Refresh requests an early reading.
	Refresh()
}

// RuntimeSide is the container runtime.
type RuntimeSide interface {
	Run(ctx context.Context) error
	Facts() audit.Runtime
	Refresh()
	// Calls counts the requests to the runtime, by name.
	Calls() map[string]uint64
}

// MachineSide is the machine.
type MachineSide interface {
	Run(ctx context.Context) error
	Facts() audit.Machine
	Refresh()
}

// absent is a runtime that does not serve CRI and is not queried: its facts are unknown.
type absent struct{ since time.Time }

func noRuntime(now time.Time) RuntimeSide { return absent{now} }

func (absent) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (a absent) Facts() audit.Runtime {
	return audit.Runtime{RuntimeAnswer: audit.Answer{From: "none", Silent: a.since, Err: "there is no runtime that serves CRI"}}
}

func (absent) Refresh() {}

func (absent) Calls() map[string]uint64 { return nil }

// Changed takes that a side has something new about a pod, or, with an empty UID, about the node or itself.
// It returns at once.
type Changed func(side audit.Side, uid types.UID)

// facts are what all sides know now.
func (s *Sides) facts(node string, now time.Time) audit.Facts {
	return audit.Facts{Now: now, Node: node, API: s.API.Facts(), Kubelet: s.Kubelet.Facts(), Runtime: s.Runtime.Facts(), Machine: s.Machine.Facts()}
}

// refreshAfter asks those sooner that learn of a change only by being asked: a container that has ended
// is soon known to the kubelet, a pod that is deleted soon loses its directory.
func (s *Sides) refreshAfter(side audit.Side, uid types.UID) {
	switch side {
	case audit.SideAPI:
		if uid == "" {
			return // the lease is renewed all the time
		}
		s.Kubelet.Refresh()
	case audit.SideKubelet:
		s.Runtime.Refresh()
		s.Machine.Refresh()
	case audit.SideRuntime:
		s.Kubelet.Refresh()
		s.Machine.Refresh()
	}
}

// refreshFor asks those again whose facts are older than a difference: it may be over, or news on its way.
// One that is drift has lasted long enough. Those that are stale hold up drift.
func (s *Sides) refreshFor(report *audit.Report, stale []audit.Side) {
	behind := func(side audit.Side) bool {
		if slices.Contains(stale, side) {
			return true
		}
		answer := report.Sides[side]
		for i := range report.Differences {
			if d := &report.Differences[i]; !d.Drift && answer.Known() && !answer.At.After(d.Seen) {
				return true
			}
		}
		return false
	}
	if behind(audit.SideAPI) {
		s.API.Confirm()
	}
	if behind(audit.SideKubelet) {
		s.Kubelet.Refresh()
	}
	if behind(audit.SideRuntime) {
		s.Runtime.Refresh()
	}
	if behind(audit.SideMachine) {
		s.Machine.Refresh()
	}
}
