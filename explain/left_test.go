package explain_test

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/statusd/statusd/explain"
)

// leftStories are those in which it matters what the node had left.
func leftStories() []story {
	return []story{
		{"evicted by a kubelet", explain.StateEvicted, []explain.Code{explain.CodeEvicted},
			func() explain.Facts {
				return facts(failedWith("Evicted", "The node was low on resource: ephemeral-storage. Threshold quantity: 26843545600, available: 20Gi. Container db was using 4Gi, request is 0, has larger consumption of ephemeral-storage. "))
			}},
		{"evicted, and the load says what was left", explain.StateEvicted, []explain.Code{explain.CodeEvicted},
			func() explain.Facts {
				f := facts(failedWith("Evicted", "The node was low on resource: memory. "), func(p *v1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, condition(v1.DisruptionTarget, v1.ConditionTrue, "TerminationByKubelet", ""))
				})
				f.Node.Left = []explain.Left{{At: ago(5 * time.Minute), Memory: 1 << 30}, {At: ago(40 * time.Second), Memory: 80 << 20}, {At: ago(10 * time.Second), Memory: 2 << 30}}
				return f
			}},
		{"evicted, and the load is not of then", explain.StateEvicted, []explain.Code{explain.CodeEvicted},
			func() explain.Facts {
				f := facts(failedWith("Evicted", "The node was low on resource: memory. "), func(p *v1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, condition(v1.DisruptionTarget, v1.ConditionTrue, "TerminationByKubelet", ""))
				})
				f.Node.Left = []explain.Left{{At: ago(5 * time.Minute), Memory: 1 << 30}}
				return f
			}},
		{"out of memory with a limit", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeWillRestart, explain.CodeExited},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, ended("OOMKilled", 137, ""), v1.ConditionFalse), func(p *v1.Pod) {
					p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}
				})
				f.Node.Left = []explain.Left{{At: ago(25 * time.Second), Memory: 3 << 29}}
				return f
			}},
		{"out of memory without a limit", explain.StateNotReady, []explain.Code{explain.CodeContainersNotReady, explain.CodeWillRestart, explain.CodeExited},
			func() explain.Facts {
				f := facts(with(v1.PodRunning, ended("OOMKilled", 137, ""), v1.ConditionFalse))
				f.Node.Left = []explain.Left{{At: ago(25 * time.Second), Memory: 30 << 20}}
				return f
			}},
	}
}
