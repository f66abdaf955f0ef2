package oracle

// Rule is a wanted difference between the kubelet and statusd.
type Rule struct {
	// Name is that of the rule in docs/rules.md, or of the issue.
	Name string
	Why  string
	// Parts says that after this difference the pod's two histories cannot be compared.
	Parts bool
	// Forgive makes the two views alike in what this rule explains, and only in that. It
	// reports whether there was anything to forgive.
	Forgive func(*Case) bool
}

// Case is a pod that the two sides see differently.
type Case struct {
	*run
	Pod     *nodePod
	Kubelet *View
	Statusd *View
}

// Wanted is the list of the wanted differences, in the order in which they are tried. Each
// check looks for the cause, where there is a trace of it, and for exactly the effect.
var Wanted = []Rule{
	{
		Name:    "T7 init mismatch",
		Why:     "init statuses that do not line up with the spec do no harm; the kubelet refuses every report from then on, the termination included",
		Parts:   true,
		Forgive: forgiveFrozen,
	},
	{
		Name:    "S11 wiped status",
		Why:     "a status is kept when the API has another pod of the name (#137309); the kubelet forgets it, and a new mirror stays without a status",
		Parts:   true,
		Forgive: forgiveWiped,
	},
	{
		Name:    "M0d another life",
		Why:     "a report about a static pod that was terminated or removed begins another life of it; the kubelet refuses to let its containers run again",
		Parts:   true,
		Forgive: forgiveAnotherLife,
	},
	{
		Name:    "M0 no manifest",
		Why:     "without its manifest a static pod has no mirror to write to; the kubelet goes on as long as it remembers which mirror it was",
		Parts:   true,
		Forgive: forgiveForgotten,
	},
	{
		Name:    "E7 duplicates",
		Why:     "of two conditions of one type the last is sent; the kubelet cannot make a patch of them, and the pod is never heard of again",
		Forgive: forgiveDuplicate,
	},
	{
		Name:    "P4 order",
		Why:     "the order of conditions alone is not worth a request; the kubelet sends one, at the next tick or write",
		Forgive: forgiveOrder,
	},
	{
		Name:    "N3 runes",
		Why:     "a termination message is cut between two runes, and text is made valid before it is stored; the kubelet cuts runes in half, and differs from the API for ever",
		Forgive: forgiveRunes,
	},
	{
		Name:    "#119514 transition time",
		Why:     "a transition time in the API is never set back; the kubelet writes its older one over that of another writer",
		Forgive: forgiveSetBack,
	},
	{
		Name:    "X8 disruption time",
		Why:     "merging writes into nobody's cache: the kubelet's sets the time of a cached DisruptionTarget when it sends it",
		Forgive: forgiveDisruptionTime,
	},
	{
		Name:    "X6 mirror generation",
		Why:     "a static pod that ended while its status says ready is unready by the generation of its manifest, as all its conditions are; the kubelet gives these two the mirror's",
		Forgive: forgiveMirrorGeneration,
	},
	{
		Name:    "X6 churn",
		Why:     "a pod that ended while its status says ready is written once; the kubelet gives both conditions a new transition time with each write, and writes at each tick",
		Forgive: forgiveChurn,
	},
	{
		Name:    "K7 unready",
		Why:     "Ready and ContainersReady of a terminated pod are False in the cache too; the kubelet sees to that only on the way to the API",
		Forgive: forgiveTerminatedReady,
	},
	{
		Name:    "V4 version reset",
		Why:     "a status that is stored again after its removal is a newer version; the kubelet counts from 1 again, sends nothing before a tick, and then nothing that its equality does not see",
		Forgive: forgiveVersionReset,
	},
	{
		Name:    "K3 unseen start",
		Why:     "whether a pod has initialised is read from the cache too, and init statuses by name; the kubelet looks at the pod object alone, and by place, and leaves containers running in a failed pod",
		Parts:   true,
		Forgive: forgiveUnseenStart,
	},
	{
		Name:    "X7 final phase",
		Why:     "a terminal phase is never left, in the cache or in the API; the kubelet's manager lets a report overwrite it",
		Parts:   true,
		Forgive: forgiveFinalPhase,
	},
	{
		Name:    "H6 gates",
		Why:     "readiness gates are decided by the newest conditions of the API's pod; the kubelet goes by those that were stored with the last report",
		Forgive: forgiveGates,
	},
	{
		Name:    "X9 static pods run",
		Why:     "whether containers could run is asked about the static pod; the kubelet asks about its mirror, of which the pod workers know nothing, and publishes a terminal phase too early",
		Forgive: forgiveStaticRuns,
	},
	{
		Name:    "D5 gone",
		Why:     "a finished pod that is gone from the API is done with; the kubelet keeps its status until the orphans are removed",
		Parts:   true,
		Forgive: forgiveGone,
	},
	{
		Name:    "D2 deleted first",
		Why:     "a finished pod is deleted when its deletion is seen, which is on the watch; the kubelet sees it at a tick, and somebody else may be faster than either",
		Parts:   true,
		Forgive: forgiveDeletedFirst,
	},
	{
		Name:    "Z5 backfill",
		Why:     "resize conditions that are read back keep their times and replace nothing that is known already; the kubelet starts their times anew and replaces",
		Parts:   true,
		Forgive: forgiveBackfill,
	},
	{
		Name:    "O3 resize orphans",
		Why:     "the resize conditions of a removed pod go even if it had no status; the kubelet keeps them for ever",
		Parts:   true,
		Forgive: forgiveResizeOrphans,
	},
}
