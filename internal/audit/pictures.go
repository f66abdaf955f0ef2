package audit

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/podstatus"
)

// Pictures returns what each side has of a pod, side by side: API, kubelet, runtime, machine. The UID
// may be that of a mirror pod or of its static pod. Pictures returns nil if no side has the pod.
func Pictures(f Facts, uid types.UID) []Picture {
	w := newWorld(f)
	at := slices.IndexFunc(w.pods, func(p *podView) bool { return p.nodeUID == uid || p.ref.UID == uid })
	if at < 0 {
		return nil
	}
	p := w.pods[at]
	list := []Picture{
		w.statusPicture(SideAPI, p.api),
		w.statusPicture(SideKubelet, p.lastKubelet),
		w.runtimePicture(p),
		w.machinePicture(p),
	}
	if p.kubelet != nil && !w.ownStatus(p) {
		list[1].Notes = append(list[1].Notes, "its copy of the API's status, not its own")
	}
	w.mark(p, list)
	return list
}

func (w *world) picture(s Side) Picture {
	a := w.answer(s)
	return Picture{Side: s, Known: a.Known(), Err: a.Err, At: a.At, From: a.From}
}

func (w *world) statusPicture(side Side, s *Sighting) Picture {
	pic := w.picture(side)
	if s == nil {
		return pic
	}
	st := &s.Pod.Status
	pic.Exists, pic.At, pic.Phase, pic.Deleting = true, s.At, string(st.Phase), deleting(s.Pod)
	if ready := podstatus.FindCondition(st.Conditions, v1.PodReady); ready != nil {
		pic.Ready = string(ready.Status)
	}
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		pic.Containers = append(pic.Containers, pictureOfStatus(&c))
	}
	return pic
}

func pictureOfStatus(s *v1.ContainerStatus) PictureContainer {
	c := PictureContainer{Name: s.Name, ID: bareID(s.ContainerID), State: stateKind(s), Restarts: s.RestartCount, Ready: &s.Ready}
	switch {
	case s.State.Running != nil:
		c.Since = s.State.Running.StartedAt.Time
	case s.State.Terminated != nil:
		t := s.State.Terminated
		c.Reason, c.ExitCode, c.Since = t.Reason, &t.ExitCode, t.FinishedAt.Time
	case s.State.Waiting != nil:
		c.Reason = s.State.Waiting.Reason
	}
	return c
}

func (w *world) runtimePicture(p *podView) Picture {
	pic := w.picture(SideRuntime)
	pic.Exists = len(p.attempts) > 0 || len(p.sandboxes) > 0
	for _, name := range slices.Sorted(maps.Keys(p.attempts)) {
		newest := p.newest(name)
		c := PictureContainer{Name: name, ID: newest.ID, State: string(newest.State), Reason: newest.Reason, Restarts: int32(newest.Attempt)}
		switch newest.State {
		case ContainerRunning:
			c.Since = newest.Started
		case ContainerExited:
			code := newest.ExitCode
			c.State, c.ExitCode, c.Since = "terminated", &code, newest.Finished
		}
		pic.Containers = append(pic.Containers, c)
	}
	for _, s := range p.sandboxes {
		if s.Ready {
			pic.Notes = append(pic.Notes, "sandbox "+short(s.ID)+" is ready")
		}
	}
	return pic
}

func (w *world) machinePicture(p *podView) Picture {
	pic := w.picture(SideMachine)
	pic.Exists = p.dir != nil || p.cgroup != nil
	if p.dir != nil {
		pic.Notes = append(pic.Notes, "directory "+p.dir.Path)
		for _, m := range p.dir.Mounts {
			pic.Notes = append(pic.Notes, "mounted: "+m)
		}
		for _, v := range p.dir.Volumes {
			pic.Notes = append(pic.Notes, "not empty: "+v)
		}
	}
	if p.cgroup != nil {
		pic.Notes = append(pic.Notes, fmt.Sprintf("control group %s with %d processes", p.cgroup.Path, p.cgroup.Processes))
	}
	return pic
}

// mark sets Differs on the containers that the differences of the pod are about.
func (w *world) mark(p *podView, list []Picture) {
	differs := map[string]bool{}
	for _, f := range w.comparePod(p) {
		switch f.Kind {
		case KubeletBehindRuntime, UnreportedRestart, RunningWithoutContainer, APIBehindKubelet, ForeignWriter, ContainerWithoutPod:
			if f.Container != "" {
				differs[f.Container] = true
				continue
			}
			for _, pic := range list {
				for _, c := range pic.Containers {
					differs[c.Name] = differs[c.Name] || contradicts(list, c.Name)
				}
			}
		}
	}
	for i := range list {
		for j := range list[i].Containers {
			list[i].Containers[j].Differs = list[i].Known && differs[list[i].Containers[j].Name]
		}
	}
}

// contradicts reports whether sides that answer show a container in different states.
func contradicts(list []Picture, name string) bool {
	states := map[string]bool{}
	for _, pic := range list {
		if !pic.Known || pic.Side == SideMachine {
			continue
		}
		at := slices.IndexFunc(pic.Containers, func(c PictureContainer) bool { return c.Name == name })
		if at < 0 {
			states["none"] = true
		} else {
			states[pic.Containers[at].State] = true
		}
	}
	return len(states) > 1
}
