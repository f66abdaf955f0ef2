package main

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/view"
)

// nodesOfScript adds three nodes to an API server: the kubelet of one is dead, another one is fine, and the third has no observer.
// In the namespace calm each node is fine.
func nodesOfScript(answers map[string]any) {
	now := time.Now()
	ready := v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}}
	var nodes v1.NodeList
	for _, name := range []string{"bare", "dead", "fine"} {
		nodes.Items = append(nodes.Items, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: ready})
	}
	answers["/api/v1/nodes"] = nodes
	fine := view.Overview{Node: "fine", Audit: &view.AuditOverview{}, Guard: &view.GuardOverview{Health: guard.Healthy, Since: now.Add(-time.Hour)}}
	dead := view.Overview{Node: "dead", Audit: &view.AuditOverview{Drift: []view.DriftOverview{
		{Kind: audit.RunningWithoutContainer, Count: 3, Since: now.Add(-10 * time.Minute), Certainty: audit.Certain},
	}}, Guard: &view.GuardOverview{
		Health: guard.Unhealthy, Since: now.Add(-10 * time.Minute), Reasons: []string{"ProcessGone", "LeaseStale"}, Helps: true, Withheld: "restarts are off", Restarts: 1, Would: 2,
	}}
	calm := map[string]view.Overview{"fine": fine, "dead": fine, "bare": fine}
	for namespace, overviews := range map[string]map[string]view.Overview{"statusd": {"fine": fine, "dead": dead}, "calm": calm} {
		var pods v1.PodList
		for name, overview := range overviews {
			overview.Node = name
			pods.Items = append(pods.Items, v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "observe-" + name}, Spec: v1.PodSpec{NodeName: name}, Status: v1.PodStatus{PodIP: "192.0.2.1"},
			})
			answers["/api/v1/namespaces/"+namespace+"/pods/http:observe-"+name+":10266/proxy/overview"] = overview
		}
		answers["/api/v1/namespaces/"+namespace+"/pods"] = pods
	}
}
