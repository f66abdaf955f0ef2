package oracle

// Rule is a wanted difference between the kubelet and statusd.
type Rule struct {
	// Name is the name of the rule in docs/reference/pod-status-rules.md, or of the issue.
	Name string
	Why  string
	// Explain makes the two views alike in what this rule explains, and only in that. It
	// reports whether there was any such difference.
	Explain func(*Case) bool
}

// Case is a pod that the two sides see differently.
type Case struct {
	*run
	Pod     *nodePod
	Kubelet *View
	Statusd *View
}

// Wanted is the list of the wanted differences, in the order in which they are tried. Each check
// looks for the cause, if it left a trace, and for exactly the effect.
var Wanted = []Rule{
	{
		Name:    "P4 order",
		Why:     "the order of conditions alone is not worth a request; the kubelet sends one, at the next tick or write",
		Explain: explainOrder,
	},
	{
		Name:    "#119514 transition time",
		Why:     "a transition time in the API is never set back; the kubelet writes its older one over that of another writer",
		Explain: explainSetBack,
	},
	{
		Name:    "X8 disruption time",
		Why:     "merging changes no cached status: the kubelet's sets the time of a cached DisruptionTarget when it sends it",
		Explain: explainDisruptionTime,
	},
	{
		Name:    "X6 churn",
		Why:     "a pod that ended while its status says ready is written once; the kubelet gives both conditions a new transition time with each write, and writes at each tick",
		Explain: explainChurn,
	},
	{
		Name:    "U5 last copy",
		Why:     "a report after the pod's deletion continues the last copy that the watch has shown; the kubelet may have written over another writer's transition before its watch showed it",
		Explain: explainLastCopy,
	},
	{
		Name:    "S15 last details",
		Why:     "the same, of a pod whose last details were not written because its deletion came first: the copy has the condition PodReadyToStartContainers from before",
		Explain: explainLastDetails,
	},
	{
		Name:    "H6 gates",
		Why:     "readiness gates are decided by the newest conditions of the API's pod; the kubelet goes by those that were stored with the last report",
		Explain: explainGates,
	},
}
