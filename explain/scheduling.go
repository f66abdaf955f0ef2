package explain

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// obstacle is one reason for which the scheduler refuses nodes: how its message begins, and what to do about it.
type obstacle struct {
	begins  string
	text    string // {} is the rest of the message
	do      string
	command string // {} is the rest, NS the namespace
}

// obstacles are the reasons of the scheduler's plug-ins, the more special ones first.
var obstacles = []obstacle{
	{"Insufficient ", "{n} too little {} left", "ask for less {}, end other pods, or add a node", "kubectl describe nodes"},
	{"Too many pods", "{n} as many pods as allowed", "add a node, or end other pods", "kubectl get pods -A -o wide"},
	{"node(s) had untolerated taint(s)", "{n} a taint that it does not tolerate{}", "tolerate the taint in the pod's tolerations, or remove it from the node", "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"},
	{"node(s) had untolerated taint", "{n} a taint that it does not tolerate{}", "tolerate the taint in the pod's tolerations, or remove it from the node", "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"},
	{"node(s) had taints that the pod didn't tolerate", "{n} taints that it does not tolerate", "tolerate the taints in the pod's tolerations, or remove them from the node", "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"},
	{"node(s) didn't match Pod's node affinity/selector", "{n} not the labels that nodeSelector or node affinity ask for", "label a node, or correct nodeSelector and affinity", "kubectl get nodes --show-labels"},
	{"node(s) didn't match pod anti-affinity rules", "{n} a pod that its anti-affinity excludes", "add a node, or relax podAntiAffinity", "kubectl get pods -A -o wide"},
	{"node(s) didn't satisfy existing pods anti-affinity rules", "{n} a pod whose anti-affinity excludes it", "add a node, or relax the anti-affinity of the other pod", "kubectl get pods -A -o wide"},
	{"node(s) didn't match pod affinity rules", "{n} no pod that its affinity asks for", "start the pod that it wants to be near, or relax podAffinity", "kubectl get pods -A -o wide --show-labels"},
	{"node(s) didn't match pod topology spread constraints (missing required label)", "{n} not the label that its topology spread constraints ask for", "label the nodes, or correct topologyKey in topologySpreadConstraints", "kubectl get nodes --show-labels"},
	{"node(s) didn't match pod topology spread constraints", "{n} more of its pods than the topology spread constraints allow", "add a node in another zone, or relax topologySpreadConstraints", "kubectl get nodes --show-labels"},
	{"node(s) didn't have free ports for the requested pod ports", "{n} the host port in use", "change the host port, or end the pod that has it", "kubectl get pods -A -o wide"},
	{"node(s) were unschedulable", "{n} cordoned", "make a node schedulable again", "kubectl uncordon NODE"},
	{"node(s) didn't match the requested node name", "{n} another name than the pod asks for", "correct the name of the node that the pod asks for", "kubectl get nodes"},
	{"node(s) didn't match PersistentVolume's node affinity", "{n} no access to its volume, which is bound to other nodes", "start it where its volume is, or move the volume", "kubectl get pv -o custom-columns=NAME:.metadata.name,CLAIM:.spec.claimRef.name,NODES:.spec.nodeAffinity"},
	{"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod", "another pod has its PersistentVolumeClaim, whose access mode ReadWriteOncePod allows one pod at a time", "end the other pod, or use the access mode ReadWriteOnce", "kubectl get pods -n NS -o custom-columns=NAME:.metadata.name,CLAIMS:.spec.volumes[*].persistentVolumeClaim.claimName"},
	{"node(s) did not have enough free storage", "{n} too little storage left for its volume", "free storage, or ask for a smaller volume", "kubectl get csistoragecapacities -A"},
	{"node(s) had no available disk", "{n} its disk in use by another pod", "end the other pod", "kubectl get pods -A -o wide"},
	{"node(s) had volume node affinity conflict", "{n} no access to its volume, which is bound to other nodes", "start it where its volume is, or move the volume", "kubectl get pv -o custom-columns=NAME:.metadata.name,CLAIM:.spec.claimRef.name,NODES:.spec.nodeAffinity"},
	{"node(s) had no available volume zone", "{n} in another zone than its volume", "add a node in the zone of the volume", "kubectl get nodes -L topology.kubernetes.io/zone"},
	{"node(s) exceed max volume count", "{n} as many volumes as allowed", "add a node, or end pods with volumes", "kubectl get volumeattachments"},
	{"node(s) didn't find available persistent volumes to bind", "no persistent volume fits its claim", "create a volume that fits, or a storage class that makes one", "kubectl get pv,pvc,storageclass -n NS"},
	{"node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "its claim is bound to a volume that does not exist", "delete the claim and create it again", "kubectl get pv,pvc -n NS"},
	{"persistentvolumeclaim ", "PersistentVolumeClaim {}", "create the claim, or correct claimName in the pod's volumes", "kubectl get pvc -n NS"},
	{"pod has unbound immediate PersistentVolumeClaims", "its PersistentVolumeClaim is not bound to a volume", "read why the claim is not bound", "kubectl describe pvc -n NS"},
	{"could not find ", "{}", "create the claim, or correct its name", "kubectl get resourceclaims -n NS"},
	{"resourceclaim ", "ResourceClaim {}", "create the claim, or correct its name in the pod's resourceClaims", "kubectl get resourceclaims -n NS"},
	{"cannot allocate all claims", "its resource claims cannot be allocated", "check the devices and the claims", "kubectl get resourceclaims,resourceslices -n NS"},
	{"waiting for ephemeral volume controller to create the persistentvolumeclaim", "the claim of its ephemeral volume has not been created", "check the controller manager", "kubectl get pvc -n NS"},
	{"node(s) were not found", "the node that it asks for does not exist", "correct nodeName or affinity", "kubectl get nodes"},
	{"no nodes available to schedule pods", "the cluster has no node", "add a node", "kubectl get nodes"},
}

var (
	nodesOf    = regexp.MustCompile(`^(\d+)/(\d+) nodes are available: `)
	numbered   = regexp.MustCompile(`^(\d+) (.*)$`)
	oneBy      = regexp.MustCompile(`, (\d+ (?:node\(s\)|Insufficient|Too many|cannot|\S+ CSI driver))`)
	afterwards = regexp.MustCompile(`(?:\.|,)? *(?:no new claims to deallocate,? *)?(?:preemption: .*)$`)
)

// unschedulable explains the message of the scheduler: one cause for each obstacle. Preemption is left
// out: it is what the scheduler tried, not what is wrong.
func unschedulable(f Facts, message string) []Cause {
	message = withoutPreemption(shortenTo(message, 2000))
	total := ""
	if m := nodesOf.FindStringSubmatch(message); m != nil {
		total, message = m[2], message[len(m[0]):]
	}
	var causes []Cause
	var counts []int
	for reason := range strings.SplitSeq(oneBy.ReplaceAllString(message, "\x00$1"), "\x00") {
		reason = strings.TrimSuffix(strings.TrimSpace(reason), ".")
		count := ""
		if m := numbered.FindStringSubmatch(reason); m != nil {
			count, reason = m[1], m[2]
		}
		for _, o := range obstacles {
			if rest, ok := strings.CutPrefix(reason, o.begins); ok {
				n, _ := strconv.Atoi(count)
				causes, counts = append(causes, o.cause(f, count, total, strings.TrimSuffix(rest, "."))), append(counts, n)
				break
			}
		}
	}
	return most(causes, counts)
}

// withoutPreemption is a message of the scheduler without what it tried to make room.
func withoutPreemption(message string) string {
	return strings.TrimSuffix(strings.TrimSpace(afterwards.ReplaceAllString(message, "")), ".")
}

// most sorts causes: what keeps the pod off most nodes first.
func most(causes []Cause, counts []int) []Cause {
	order := make([]int, len(causes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	var sorted []Cause
	for _, i := range order {
		sorted = append(sorted, causes[i])
	}
	return sorted
}

func (o obstacle) cause(f Facts, count, total, rest string) Cause {
	rest = strings.TrimSuffix(shorten(strings.Trim(rest, ", ")), ". not found") // as the scheduler repeats it
	nodes := "has"
	switch {
	case count != "" && count == total && total == "1":
		nodes = "the one node has"
	case count != "" && count == total:
		nodes = "all " + total + " nodes have"
	case count == "1":
		nodes = "1 of " + total + " nodes has"
	case count != "":
		nodes = count + " of " + total + " nodes have"
	}
	if strings.HasPrefix(o.text, "{n} cordoned") || strings.HasPrefix(o.text, "{n} in another") {
		nodes = strings.NewReplacer("has", "is", "have", "are").Replace(nodes)
	}
	if strings.HasSuffix(o.text, "{}") && strings.HasPrefix(rest, "{") {
		rest = " " + rest
	}
	said := strings.NewReplacer("{n}", nodes, "{}", rest).Replace(o.text) + f.asked(o, rest)
	said = strings.NewReplacer("all "+total+" nodes have not the ", "none of the "+total+" nodes has the ", "has not the ", "does not have the ", "have not the ", "do not have the ").Replace(said)
	next := Next{Do: strings.ReplaceAll(o.do, "{}", rest), Command: strings.NewReplacer("{}", rest, "NS", f.Pod.Namespace).Replace(o.command),
		Wait: "the scheduler tries again when the cluster changes"}
	if strings.HasPrefix(o.begins, "persistentvolumeclaim ") && strings.Contains(rest, "being deleted") {
		next.Do = "find what keeps the claim, such as another pod that uses it; create it again when it is gone"
		next.Command = "kubectl describe pvc -n " + f.Pod.Namespace
	}
	if strings.Contains(o.begins, "taint") {
		ofCondition(f, count, total, rest, &said, &next)
	}
	if claim := f.unbound(); claim != nil && (strings.HasPrefix(o.begins, "pod has unbound") || strings.HasPrefix(o.begins, "node(s) didn't find available")) {
		said = "PersistentVolumeClaim " + quote(claim.Name) + " is not bound to a volume"
		next.Command = "kubectl describe pvc -n " + f.Pod.Namespace + " " + claim.Name
		switch {
		case claim.NoClass:
			said += ": there is no storage class " + quote(claim.Class)
			next.Do = "create the storage class, or correct storageClassName of the claim"
			next.Command = "kubectl get storageclasses"
		case claim.Class == "":
			said += ": it names no storage class"
			next.Do = "create a volume that fits, or name a storage class in the claim"
		}
		said += detail(claim.Message)
		switch lower := strings.ToLower(claim.Message); {
		case strings.Contains(lower, "external provisioner"):
			next.Do = "check that the provisioner that the message names is installed and runs"
		case strings.Contains(lower, "failed to provision"):
			next.Do = "correct what the provisioner's message names"
		}
	}
	return Cause{Code: CodeUnschedulable, Text: said, Next: &next}
}

// Claim is a PersistentVolumeClaim of a pod that is not bound to a volume.
type Claim struct {
	Name, Class string
	// NoClass: there is no storage class of that name.
	NoClass bool
	// Message is the message of the newest warning about the claim.
	Message string
}

func (f Facts) unbound() *Claim {
	if len(f.Claims) == 0 {
		return nil
	}
	return &f.Claims[0]
}

// conditionTaints are the taints that the control plane gives to nodes that are not well, and to its own: what they mean, and what to do
// about them. To tolerate them does not help.
var conditionTaints = map[string]struct{ text, do string }{
	"node.kubernetes.io/not-ready":                   {"not ready", "make the node ready: its conditions say what is wrong"},
	"node.kubernetes.io/unreachable":                 {"unreachable", "check the machine and its network"},
	"node.kubernetes.io/disk-pressure":               {"short of disk", "free disk on the node"},
	"node.kubernetes.io/memory-pressure":             {"short of memory", "free memory on the node"},
	"node.kubernetes.io/pid-pressure":                {"short of process IDs", "end processes on the node"},
	"node.kubernetes.io/network-unavailable":         {"without a network", "check the network plug-in of the node"},
	"node.kubernetes.io/unschedulable":               {"cordoned", "make the node schedulable again (kubectl uncordon)"},
	"node.kubernetes.io/out-of-service":              {"out of service", "bring the machine back, and remove the taint"},
	"node-role.kubernetes.io/control-plane":          {"reserved for the control plane", "add a node for workloads; in a cluster of one node, remove the taint"},
	"node-role.kubernetes.io/master":                 {"reserved for the control plane", "add a node for workloads; in a cluster of one node, remove the taint"},
	"node.cloudprovider.kubernetes.io/uninitialized": {"not initialized by the cloud provider", "check that the cloud controller manager runs"},
}

// ofCondition says of nodes whose taints stand for their condition what the condition is.
func ofCondition(f Facts, count, total, rest string, said *string, next *Next) {
	taints := f.Taints
	if key, _, ok := strings.Cut(strings.Trim(rest, " {}"), ":"); ok && strings.Contains(rest, "{") {
		taints = []string{strings.TrimSpace(key)}
	}
	var texts, dos []string
	for _, taint := range taints {
		key, _, _ := strings.Cut(taint, ":")
		key, _, _ = strings.Cut(key, "=")
		c, ok := conditionTaints[key]
		if !ok {
			return
		}
		if !slices.Contains(texts, c.text) {
			texts, dos = append(texts, c.text), append(dos, c.do)
		}
	}
	if len(texts) == 0 {
		return
	}
	nodes := "the one node is "
	switch {
	case count == total && total != "1":
		nodes = "all " + total + " nodes are "
	case count != total && count == "1":
		nodes = "1 of " + total + " nodes is "
	case count != total:
		nodes = count + " of " + total + " nodes are "
	}
	*said = nodes + strings.Join(texts, " or ") + " (taint " + list(taints) + ")"
	next.Do, next.Command = strings.Join(dos, "; "), "kubectl describe nodes"
}

// Closest is the node that comes closest to the requests of a pod.
type Closest struct {
	// To is the resource, or "labels".
	To string
	// Node is the name of the node, Has is what the node has of the resource, as "1500m of 2 are
	// free".
	Node, Has string
}

// closest says which node comes closest.
func (f Facts) closest(to string) string {
	for _, c := range f.Closest {
		if c.To == to {
			return "; node " + quote(c.Node) + " comes closest: " + c.Has
		}
	}
	return ""
}

// asked is what the pod asks for and does not get, as the scheduler's message does not say it.
func (f Facts) asked(o obstacle, rest string) string {
	switch {
	case strings.HasPrefix(o.begins, "node(s) didn't match Pod's node affinity") && len(f.Pod.Spec.NodeSelector) > 0:
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(f.Pod.Spec.NodeSelector)) {
			labels = append(labels, key+"="+f.Pod.Spec.NodeSelector[key])
		}
		return " (" + shorten(strings.Join(labels, ", ")) + ")" + f.closest("labels")
	case strings.HasPrefix(o.begins, "Insufficient"):
		return f.closest(rest)
	case strings.Contains(o.begins, "missing required label"):
		var keys []string
		for _, c := range f.Pod.Spec.TopologySpreadConstraints {
			if !slices.Contains(keys, c.TopologyKey) {
				keys = append(keys, c.TopologyKey)
			}
		}
		return " (" + shorten(strings.Join(keys, ", ")) + ")"
	case strings.HasPrefix(o.begins, "node(s) didn't have free ports"):
		return " (" + list(hostPorts(f.Pod)) + ")"
	case strings.Contains(o.begins, "taint") && len(f.Taints) > 0 && !strings.Contains(rest, "{"):
		return " (" + shorten(strings.Join(f.Taints, ", ")) + ")"
	}
	return ""
}

// hostPorts are the ports of the node that a pod asks for.
func hostPorts(pod *v1.Pod) []string {
	var ports []string
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, strconv.Itoa(int(p.HostPort)))
			} else if pod.Spec.HostNetwork {
				ports = append(ports, strconv.Itoa(int(p.ContainerPort)))
			}
		}
	}
	return ports
}
