package oracle

import (
	"maps"
	"sync"
)

// Correction is a mistake of the kubelet's that its side is spared, at the manager's boundary:
// it is handed, or answered, what does not lead to the mistake. So the two histories stay
// alike, and all that comes later is compared too.
type Correction struct {
	// Name is the name of the rule in docs/reference/pod-status-rules.md.
	Name string
	Why  string
}

// The corrections. Each is made only where its cause is met, and counted.
var (
	correctT7  = Correction{"T7 init mismatch", "init statuses that do not line up with the spec do no harm; the kubelet refuses every report from then on, the termination included, so it is told that the pod always restarts"}
	correctN3  = Correction{"N3 runes", "a termination message is cut between two runes, and text is made valid before it is stored; the kubelet cuts runes in half and differs from the API forever, so it is given messages that need no such cut"}
	correctE7  = Correction{"E7 duplicates", "of two conditions of one type the last is sent; the kubelet cannot make a patch of them, and the pod is never heard of again, so it is given the last only"}
	correctX7  = Correction{"X7 final phase", "a terminal phase is never left, in the cache or in the API; the kubelet's manager leaves that to its callers, so a report keeps to the phase as they do, and a write does not change it. An end that was reported while containers ran is revised by the report of their ends, as with the kubelet"}
	correctK3  = Correction{"K3 unseen start", "whether a pod has initialized is read from the cache too; the kubelet looks at the pod object alone and leaves containers running in a failed pod, so it is shown a pod that has started"}
	correctK7  = Correction{"K7 unready", "Ready and ContainersReady of a terminated pod are False in the cache too; the kubelet sees to that only on the way to the API, so it gets a report that says so first"}
	correctX6  = Correction{"X6 unready end", "a pod that has ended is never ready in the API, and a static pod is unready by the generation of its manifest, as all its conditions are: the mirror's is not one that the node has observed (KEP-5067, Mirror pods); the kubelet leaves a pod ready that another writer has ended as its cache says, and gives static pods the mirror's generation, so such a pod is made unready, and a write gets the manifest's"}
	correctX9  = Correction{"X9 static pods run", "whether containers could run is asked about the static pod; the kubelet asks about its mirror, of which the pod workers know nothing, and is answered for the static pod"}
	correctS11 = Correction{"S11 wiped status", "a status is kept when the API has another pod of the name (#137309); the kubelet forgets it, so a mirror that the watch has not shown is not found, and the status of a pod that was replaced is forgotten on both sides"}
	correctM0  = Correction{"M0 no manifest", "without its manifest a static pod has no mirror to write to; the kubelet goes on as long as it remembers which mirror it was, and is made to forget it"}
	correctM0d = Correction{"M0d another life", "a report about a static pod that has ended begins another life of it, whose mirror shows no end of its own; the kubelet refuses to let its containers run again, so the status of the life before is removed first, and takes the mirror's end for this life's, which it is not shown"}
	correctV4  = Correction{"V4 version reset", "a status that is stored again after its removal is a newer version; the kubelet counts from 1 again and may send nothing, so a tick passes after a removal, in which it forgets the versions too"}
	correctD5  = Correction{"D5 gone", "a finished pod that is gone from the API is done with; the kubelet keeps its status until the orphans are removed, and has it removed"}
	correctZ5  = Correction{"Z5 backfill", "resize conditions that are read back keep their times and replace nothing that is known already; the kubelet resets their times and replaces, so it reads back only what it does not have, and is given the times"}
	correctO3  = Correction{"O3 resize orphans", "the resize conditions of a removed pod go even if it had no status; the kubelet keeps them, and has them cleared"}
)

// Corrections is the list of them.
var Corrections = []Correction{
	correctT7, correctN3, correctE7, correctX6, correctX7, correctK3, correctK7, correctX9, correctS11, correctM0, correctM0d, correctV4, correctD5, correctZ5, correctO3,
}

// tally counts the corrections of a run. Some are made in the kubelet's goroutine.
type tally struct {
	mu   sync.Mutex
	made map[string]int
}

func (t *tally) count(c Correction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made == nil {
		t.made = make(map[string]int)
	}
	t.made[c.Name]++
}

func (t *tally) all() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.made)
}
