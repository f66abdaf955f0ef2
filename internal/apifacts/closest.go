package apifacts

import (
	"context"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/node/fit"
	"github.com/statusd/statusd/podstatus"
)

// maxOfCluster is how many pods of a cluster are read to compute the free resources of its nodes. In a larger cluster they
// are omitted.
const maxOfCluster = 5000

// closest are the nodes that come closest to what a pod asks for: of each resource that no node has enough of, and of the labels of
// its nodeSelector. Nodes that are cordoned or not Ready are left out.
func closest(ctx context.Context, client kubernetes.Interface, nodes []v1.Node, pod *v1.Pod) (found []explain.Closest) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n v1.Node) bool {
		return n.Spec.Unschedulable || !slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue })
	})
	if len(nodes) == 0 {
		return nil
	}
	if label := nearestLabels(nodes, pod.Spec.NodeSelector); label != nil {
		found = append(found, *label)
	}
	used, ok := usage(ctx, client)
	if !ok {
		return found
	}
	asked := fit.Requests(pod)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		want := asked[name]
		best, node := int64(-1), ""
		for i := range nodes {
			allocatable, has := nodes[i].Status.Allocatable[name]
			if !has {
				continue
			}
			taken := used[nodes[i].Name][name]
			free := allocatable.DeepCopy()
			free.Sub(taken)
			if free.Cmp(want) >= 0 { // something else keeps the pod off that node
				best = -1
				break
			}
			if left := max(free.MilliValue(), 0); left > best {
				best, node = left, nodes[i].Name
			}
		}
		if best < 0 {
			continue
		}
		free := want.DeepCopy()
		free.SetMilli(best)
		found = append(found, explain.Closest{To: string(name), Node: node, Has: free.String() + " of the " + want.String() + " that it asks for are free"})
	}
	return found
}

// usage is what the pods of each node ask for.
func usage(ctx context.Context, client kubernetes.Interface) (map[string]v1.ResourceList, bool) {
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: maxOfCluster})
	if err != nil || list.Continue != "" {
		return nil, false
	}
	byNode := map[string][]*v1.Pod{}
	for i := range list.Items {
		if p := &list.Items[i]; p.Spec.NodeName != "" && !podstatus.IsTerminal(p.Status.Phase) {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], p)
		}
	}
	used := map[string]v1.ResourceList{}
	for node, pods := range byNode {
		used[node] = fit.Total(pods)
	}
	return used, true
}

// nearestLabels is the node with most of the labels that a pod requires, and its values of the others; nil if a node has all of them,
// or no node has any of the keys.
func nearestLabels(nodes []v1.Node, selector map[string]string) *explain.Closest {
	var best *explain.Closest
	most := -1
	for i := range nodes {
		same, differ := 0, []string{}
		for _, key := range slices.Sorted(maps.Keys(selector)) {
			switch value, has := nodes[i].Labels[key]; {
			case has && value == selector[key]:
				same++
			case has:
				differ = append(differ, key+"="+value)
			default:
				differ = append(differ, "no "+key)
			}
		}
		if same == len(selector) {
			return nil
		}
		if same > most {
			most, best = same, &explain.Closest{To: "labels", Node: nodes[i].Name, Has: "it has " + strings.Join(differ, ", ")}
		}
	}
	return best
}
