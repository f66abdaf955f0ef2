package audit

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// change is a start or an end of a container that the runtime showed while the auditor was watching,
// until kubelet and API have shown it too.
type change struct {
	UID     types.UID `json:"uid"`
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	End     bool      `json:"end,omitempty"`
	At      time.Time `json:"at"`
	Kubelet bool      `json:"kubelet,omitempty"`
	API     bool      `json:"api,omitempty"`
	// Tracked is when it was seen, on the auditor's count of time.
	Tracked time.Duration `json:"tracked"`
}

// measure records how long changes took to arrive: from the runtime's own time of a start or an end
// to the arrival of the first copy that shows it, at the kubelet and at the API. Changes of pods
// that the kubelet was busy with, and changes that were drift, are not measured: they would distort
// the usual time.
func (a *Auditor) measure(w *world) {
	a.track(w)
	views := map[types.UID]*podView{}
	for _, p := range w.pods {
		views[p.nodeUID] = p
	}
	for id, c := range a.state.Changes {
		p := views[c.UID]
		if p == nil || p.pod() == nil || a.state.Counted-c.Tracked > trackedFor || a.spoiled(w, p, c) {
			delete(a.state.Changes, id)
			continue
		}
		if !c.Kubelet && w.ownStatus(p) && shows(&p.kubelet.Pod.Status, c) {
			c.Kubelet = true
			a.sample(SideKubelet, p.kubelet.At.Sub(c.At))
		}
		if !c.API && w.APIAnswer.Known() && p.api != nil && shows(&p.api.Pod.Status, c) {
			c.API = true
			a.sample(SideAPI, p.api.At.Sub(c.At))
		}
		if c.API {
			delete(a.state.Changes, id)
		}
	}
}

// track finds the changes that are new since the last look.
func (a *Auditor) track(w *world) {
	if !w.RuntimeAnswer.Known() {
		return
	}
	known := make(map[string]ContainerState, len(w.Containers))
	for id, c := range w.Containers {
		known[id] = c.State
		before, seen := a.state.Known[id]
		if !a.state.Looked || seen && before == c.State || c.UID == "" {
			continue
		}
		at, end := c.Started, false
		if c.State == ContainerExited {
			at, end = c.Finished, true
		} else if c.State != ContainerRunning {
			continue
		}
		if at.IsZero() || len(a.state.Changes) >= trackedAtMost {
			continue
		}
		a.state.Changes[id] = &change{UID: c.UID, Name: c.Name, ID: id, End: end, At: at, Tracked: a.state.Counted}
		if !c.At.Before(at) {
			a.sample(SideRuntime, c.At.Sub(at))
		}
	}
	a.state.Known, a.state.Looked = known, true
}

func (a *Auditor) sample(s Side, lag time.Duration) {
	if lag > longestSample || lag < -time.Second {
		return // a step of the clock
	}
	all := a.state.Samples[s]
	if all == nil {
		all = &samples{}
		a.state.Samples[s] = all
	}
	all.add(lag, a.state.Counted)
}

// spoiled reports whether the change says nothing about the usual way.
func (a *Auditor) spoiled(w *world, p *podView, c *change) bool {
	pod := p.pod()
	if spec := podstatus.FindContainer(pod, c.Name); spec == nil || spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil {
		return true
	}
	if status, _ := w.reported(p); status != nil && w.busy(p, c.Name) > 0 && len(containerNames(pod)) > 1 {
		return true
	}
	for _, k := range []Kind{KubeletBehindRuntime, UnreportedRestart} {
		if e := a.state.entries[key{kind: k, uid: p.ref.UID, container: c.Name}]; e != nil && e.Difference.Drift {
			return true
		}
	}
	return false
}

// shows reports whether a status shows the change, or something later of the container.
func shows(s *v1.PodStatus, c *change) bool {
	st := podstatus.FindContainerStatus(s, c.Name)
	if st == nil {
		return false
	}
	if bareID(st.ContainerID) == c.ID {
		return !c.End && st.State.Running != nil || st.State.Terminated != nil || c.End && st.State.Waiting != nil
	}
	last := st.LastTerminationState.Terminated
	return last != nil && bareID(last.ContainerID) == c.ID
}

// propagation summarizes the measurements. A side without measurements has the default bound.
func (a *Auditor) propagation() map[Side]Propagation {
	all := map[Side]Propagation{}
	for _, s := range []Side{SideAPI, SideKubelet, SideRuntime, SideMachine} {
		own := a.state.Samples[s]
		if own == nil {
			own = &samples{}
		}
		floor := boundFloor
		if s == SideAPI {
			floor = boundFloorAPI
		}
		all[s] = own.propagation(floor)
	}
	return all
}
