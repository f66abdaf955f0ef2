package audit

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/podstatus"
)

// leftoverAllowance is how long the kubelet may take to clean up after a pod: it stops containers
// within their grace, unmounts volumes, and looks for directories every few seconds.
const leftoverAllowance = time.Minute

// directoryAllowance is longer, since the volumes of a pod may be large.
const directoryAllowance = 3 * time.Minute

// leftover is the finding for remains on the node of a pod that neither API nor kubelet has.
func (w *world) leftover(p *podView) []finding {
	if !w.APIAnswer.Known() || w.kubeletStarting() || !w.kubeletLists() && w.maybeStatic(p) {
		return nil
	}
	if running := p.running(); w.RuntimeAnswer.Known() && len(running) > 0 {
		return w.containerWithoutPod(p, running)
	}
	return w.orphanedDirectory(p)
}

// maybeStatic reports whether the pod may be a static one whose mirror is missing.
func (w *world) maybeStatic(p *podView) bool {
	if !w.MachineAnswer.Known() || !w.ManifestsKnown {
		return true
	}
	return w.manifest(p.ref) != nil
}

func (w *world) manifest(r Ref) *Manifest {
	for i, m := range w.Manifests {
		if m.Name == r.Name && m.Namespace == r.Namespace {
			return &w.Manifests[i]
		}
	}
	return nil
}

func (w *world) containerWithoutPod(p *podView, running []Container) []finding {
	names := make([]string, len(running))
	f := finding{
		Difference: Difference{Kind: ContainerWithoutPod, Pod: p.ref, Certainty: Certain, Since: w.Now, Repair: true,
			Do: "The kubelet stops such containers when it starts; or stop and remove them with crictl."},
		needs: []Side{SideAPI, SideRuntime}, fresh: []Side{SideAPI, SideRuntime}, news: SideAPI, allow: leftoverAllowance,
	}
	for i, c := range running {
		names[i] = c.Name
		f.Evidence = append(f.Evidence, w.evidence(SideRuntime, c.At, fmt.Sprintf("container %q: %s", c.Name, w.runtimeText(&c))))
	}
	what := fmt.Sprintf("Container %q of %s/%s runs", names[0], p.ref.Namespace, p.ref.Name)
	if len(names) == 1 {
		f.Container = names[0]
	} else {
		what = fmt.Sprintf("The containers %s of %s/%s run", quoted(names), p.ref.Namespace, p.ref.Name)
	}
	f.Evidence = append(f.Evidence, w.evidence(SideAPI, time.Time{}, fmt.Sprintf("no pod with UID %s on this node", p.nodeUID)))
	if w.kubeletLists() {
		f.needs, f.fresh = append(f.needs, SideKubelet), append(f.fresh, SideKubelet)
		f.Message = what + ", but neither the API nor the kubelet has such a pod."
		f.Evidence = append(f.Evidence, w.evidence(SideKubelet, time.Time{}, "does not list the pod"))
		return []finding{f}
	}
	f.Certainty = Likely
	f.Message = what + ", but the API has no such pod, and the kubelet does not answer."
	f.Evidence = append(f.Evidence, w.evidence(SideKubelet, time.Time{}, w.kubeletText()))
	if w.kubeletHalted() {
		f.atOnce, f.allow = w.kubeletStopped(), 0
		f.Message = fmt.Sprintf("%s, but the API has no such pod, and %s.", what, w.processWords())
		f.Do = w.doProcess()
	}
	return []finding{f}
}

// intruders are containers that run in a pod whose spec does not have them: another client of the runtime has started them.
func (w *world) intruders(p *podView) (list []finding) {
	if !w.APIAnswer.Known() || !w.RuntimeAnswer.Known() || p.api == nil || podstatus.IsTerminal(p.api.Pod.Status.Phase) || deleting(p.api.Pod) {
		return nil
	}
	known := containerNames(p.api.Pod)
	for i := range p.api.Pod.Spec.EphemeralContainers {
		known = append(known, p.api.Pod.Spec.EphemeralContainers[i].Name)
	}
	for _, c := range p.running() {
		if slices.Contains(known, c.Name) {
			continue
		}
		list = append(list, finding{
			Difference: Difference{Kind: ContainerWithoutPod, Pod: p.ref, Container: c.Name, Certainty: Certain, Since: c.Started,
				Message: fmt.Sprintf("Container %q runs in a sandbox of %s/%s, but the spec of the pod has no such container.", c.Name, p.ref.Namespace, p.ref.Name),
				Evidence: []Evidence{w.evidence(SideRuntime, c.At, fmt.Sprintf("container %q: %s", c.Name, w.runtimeText(&c))),
					w.evidence(SideAPI, p.api.At, "containers "+quoted(known))},
				Do: "Find out which program has started the container through the socket of the runtime, and stop and remove the container with crictl."},
			needs: []Side{SideAPI, SideRuntime}, fresh: []Side{SideAPI, SideRuntime}, news: SideAPI,
		})
	}
	return list
}

// unknownToAPI is a pod that the kubelet goes on running, though the API does not have it: the kubelet has missed that
// it was deleted, as after a restore of the API from a backup, or cannot stop it. A static pod may lack its mirror.
func (w *world) unknownToAPI(p *podView) []finding {
	if !w.APIAnswer.Known() || p.api != nil || p.kubelet == nil || !w.kubeletLists() || podstatus.IsStatic(p.kubelet.Pod) || !w.RuntimeAnswer.Known() {
		return nil
	}
	running := p.running()
	if len(running) == 0 {
		return nil
	}
	list := w.containerWithoutPod(p, running)
	d := &list[0].Difference
	d.Repair = false
	d.Message = strings.Replace(d.Message, "neither the API nor the kubelet has such a pod", "the API has no such pod, which the kubelet still has", 1)
	d.Evidence[len(d.Evidence)-1] = w.evidence(SideKubelet, p.kubelet.At, "lists the pod")
	d.Do = "Look at the kubelet's log for why it does not stop the pod; a restart makes it read its pods from the API again."
	list[0].allow = leftoverAllowance + grace(p.kubelet.Pod)
	return list
}

// orphanedDirectory is the finding for a directory of a pod that is gone everywhere else. Without
// the kubelet's list it may just be a directory that the kubelet has not removed yet.
func (w *world) orphanedDirectory(p *podView) []finding {
	if p.dir == nil || !w.kubeletLists() || !w.MachineAnswer.Known() || !w.RuntimeAnswer.Known() || p.alive() {
		return nil
	}
	f := finding{
		Difference: Difference{Kind: OrphanedPodDirectory, Pod: Ref{UID: p.nodeUID}, Subject: p.dir.Path, Since: p.dir.Changed, Certainty: Certain,
			Message: fmt.Sprintf("The directory %s is of a pod that does not exist any more.", p.dir.Path),
			Evidence: []Evidence{
				w.evidence(SideMachine, p.dir.At, directoryText(p.dir)),
				w.evidence(SideAPI, time.Time{}, fmt.Sprintf("no pod with UID %s on this node", p.nodeUID)),
				w.evidence(SideKubelet, time.Time{}, "does not list the pod"),
			},
			Do: "The kubelet removes it once nothing is mounted below it and its volumes are empty: see what it logs about this directory."},
		needs: []Side{SideAPI, SideKubelet, SideRuntime, SideMachine}, fresh: []Side{SideAPI, SideKubelet, SideMachine}, allow: directoryAllowance,
	}
	switch {
	case len(p.dir.Mounts) > 0:
		f.Message = fmt.Sprintf("The directory %s is of a pod that does not exist any more; %s is still mounted.", p.dir.Path, p.dir.Mounts[0])
		f.Do = fmt.Sprintf("Find out why it is still mounted, and unmount it (umount %s); the kubelet then removes the directory.", p.dir.Mounts[0])
	case len(p.dir.Volumes) > 0:
		f.Message = fmt.Sprintf("The directory %s is of a pod that does not exist any more; its volume %s is not empty.", p.dir.Path, path.Base(p.dir.Volumes[0]))
		f.Do = fmt.Sprintf("Save what you need of %s and remove it; the kubelet then removes the directory.", p.dir.Volumes[0])
	}
	return []finding{f}
}

// alive reports whether something of the pod may still run.
func (p *podView) alive() bool {
	for _, s := range p.sandboxes {
		if s.Ready {
			return true
		}
	}
	for _, list := range p.attempts {
		for _, c := range list {
			if c.State != ContainerExited {
				return true
			}
		}
	}
	return p.cgroup != nil && p.cgroup.Processes > 0
}

func directoryText(d *PodDir) string {
	text := d.Path
	for _, m := range d.Mounts {
		text += ", mounted: " + m
	}
	for _, v := range d.Volumes {
		text += ", not empty: " + v
	}
	return text
}

// mirrorWithoutManifest is a mirror pod that no manifest on disk defines. A static pod from elsewhere
// (a URL) has no manifest on disk.
func (w *world) mirrorWithoutManifest(p *podView) []finding {
	if p.api == nil || !w.APIAnswer.Known() || !w.MachineAnswer.Known() || !w.ManifestsKnown {
		return nil
	}
	mirror := p.api.Pod
	source := cmp.Or(mirror.Annotations[podstatus.SourceAnnotation], podstatus.SourceFile)
	if !podstatus.IsMirror(mirror) || source != podstatus.SourceFile || w.manifest(p.ref) != nil {
		return nil
	}
	f := finding{
		Difference: Difference{Kind: MirrorWithoutManifest, Pod: p.ref, Since: w.Now, Certainty: Certain,
			Message: fmt.Sprintf("The API has %s/%s, the mirror of a static pod, but no manifest on the node describes it.", p.ref.Namespace, p.ref.Name),
			Evidence: []Evidence{
				w.evidence(SideAPI, p.api.At, "mirror of "+mirror.Annotations[v1.MirrorPodAnnotationKey]),
				w.evidence(SideMachine, time.Time{}, fmt.Sprintf("%d manifests, none of this name", len(w.Manifests))),
			},
			Do: "Delete the mirror pod in the API; if the static pod is meant to be there, put its manifest back."},
		needs: []Side{SideAPI, SideMachine}, fresh: []Side{SideAPI, SideMachine}, news: SideAPI, allow: leftoverAllowance + grace(mirror),
	}
	switch {
	case w.kubeletStarting() || w.kubeletAnswers() && p.kubelet != nil:
		return nil // it is stopping the pod, or has not read its manifests yet
	case !w.kubeletAnswers():
		f.Certainty = Likely
		f.atOnce = w.kubeletStopped()
		if w.kubeletHalted() {
			f.allow = 0
			f.Do = w.doProcess() + " It then deletes the mirror pod."
		}
	default:
		f.needs, f.fresh = append(f.needs, SideKubelet), append(f.fresh, SideKubelet)
	}
	return []finding{f}
}
