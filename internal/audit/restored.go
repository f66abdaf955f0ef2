package audit

import "fmt"

// restored merges the differences that a restore of the API server from a backup explains: the watches of a kubelet that has run since before the
// restore belong to the lost history. A kubelet that started after the restore has listed its pods again, so its differences have another cause.
func restored(w *world, list []Difference) []Difference {
	if w.APIRestored.IsZero() || !w.ProcessKnown || w.Process == nil || !w.Process.Started.Before(w.APIRestored) {
		return list
	}
	var rest []Difference
	d := Difference{Kind: APIRestored, Seen: w.Now, Since: w.APIRestored, Drift: true, Certainty: Certain,
		Evidence: []Evidence{
			w.evidence(SideAPI, w.APIRestored, "the server's resource versions have gone back"),
			w.evidence(SideMachine, w.Process.Started, fmt.Sprintf("the kubelet (process %d) has run since %s", w.Process.PID, w.when(w.Process.Started))),
		},
		Do: "Restart the kubelet, here and on the other nodes of the cluster: then it lists its pods again.",
	}
	pods := map[Ref]bool{}
	for _, one := range list {
		if !one.Drift || !one.Kind.afterRestore() || one.Seen.Before(w.APIRestored) {
			rest = append(rest, one)
			continue
		}
		pods[one.Pod] = true
		if one.Seen.Before(d.Seen) {
			d.Seen = one.Seen
		}
		const enough = 8
		if len(d.Evidence) < enough {
			d.Evidence = append(d.Evidence, Evidence{Side: SideAPI, At: one.Seen, Text: fmt.Sprintf("%s %s/%s: %s", one.Kind, one.Pod.Namespace, one.Pod.Name, one.Message)})
		}
	}
	if len(pods) == 0 {
		return list
	}
	d.Message = fmt.Sprintf("The API server was restored from a backup, and what it says of %s on node %s is not true since: the kubelet still goes by what was before.", podCount(len(pods)), w.Node)
	return append(rest, d)
}

// afterRestore reports whether a restore explains differences of a kind.
func (k Kind) afterRestore() bool {
	switch k {
	case APIBehindKubelet, KubeletBehindRuntime, RunningWithoutContainer, UnreportedRestart, ContainerWithoutPod, StuckTerminating:
		return true
	}
	return false
}
