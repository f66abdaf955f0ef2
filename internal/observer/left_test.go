package observer

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/machine"
)

// A kubelet that does not say what its node had left when it evicted a pod: the load that was read then does.
func TestAnEvictionIsExplainedByTheLoadOfThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		uid := w.add("web")
		o := w.observer(func(c *Config) {
			c.Machine = machine.Config{NoKernelLog: true, Units: map[string]string{}, Disks: []string{"/"}}
		})
		stop := w.run(o)
		time.Sleep(30 * time.Second)
		evicted := w.kubelet[uid].DeepCopy()
		evicted.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory. ", Conditions: []v1.PodCondition{
			{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: metav1.Now()},
		}}
		w.mu.Lock()
		w.api[uid], w.kubelet[uid] = evicted, evicted
		w.mu.Unlock()
		time.Sleep(30 * time.Second)
		pod, ok := o.console.Source().Pod(uid)
		if !ok {
			t.Fatal("the pod is not known")
		}
		why := explain.Pod(pod.Facts).Sentence(time.UTC)
		if !strings.HasPrefix(why, "Pod shop/web was evicted, because the node had ") || !strings.Contains(why, " of memory left: ") {
			t.Errorf("the explanation is %q", why)
		}
		stop()
	})
}
