package virtualkubelet

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// extra is a provider whose list of pods has more than the pods of this node.
type extra struct {
	*cloud
	more []*v1.Pod
}

func (e *extra) GetPods(ctx context.Context) ([]*v1.Pod, error) {
	pods, err := e.cloud.GetPods(ctx)
	return append(e.more, append(pods, pods...)...), err
}

// Two nodes may share an account of a cloud, whose list then has the pods of both: those of the other node must not be deleted.
func TestRestart_PodsOfAnotherNode_AreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &extra{cloud: newCloud()}
		pods := map[string]*v1.Pod{}
		for _, name := range []string{"other", "orphan", "web"} {
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
				Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "main", Image: "app"}}},
			}
			if pods[name] = pod; name == "other" {
				pod.Spec.NodeName = "another"
			}
			if err := provider.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		provider.more = []*v1.Pod{nil, {}, {ObjectMeta: metav1.ObjectMeta{Name: "nowhere", UID: "nowhere"}}}
		w := runNode(t, provider, pods["other"], pods["web"])
		w.after(10 * time.Minute)
		for name, want := range map[string]bool{"other": true, "orphan": false, "web": true} {
			if _, err := provider.GetPod(t.Context(), "default", name); (err == nil) != want {
				t.Errorf("the provider has pod %s: %t, want %t", name, err == nil, want)
			}
		}
		w.wantReady("beside them", v1.ConditionTrue)
	})
}

// Thousands of notifications of one pod become few requests, and the last one counts.
func TestNotifications_InAStorm_TheLastOneCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &notifying{cloud: newCloud()}
		w := newWorld(t, provider)
		w.start()
		web, beside := w.run("web"), w.create("beside")
		patches := w.api.Count("PATCH")
		for i := range 20_000 {
			pod := web.DeepCopy()
			pod.Status = runningStatus(pod)
			pod.Status.Conditions[0].Status = v1.ConditionFalse
			pod.Status.ContainerStatuses[0].Ready = false
			if i == 19_999 {
				pod.Status.Message = "the last one"
			}
			provider.notify(pod)
		}
		synctest.Wait()
		w.want(web, "after the storm", v1.PodRunning, false)
		w.want(beside, "beside it", v1.PodRunning, true)
		if got := w.api.Pod(web).Status.Message; got != "the last one" {
			t.Errorf("the message is %q, want that of the last notification", got)
		}
		if n := w.api.Count("PATCH") - patches; n > 100 {
			t.Errorf("%d requests for 20,000 notifications of one change", n)
		}
		w.end()
	})
}

// A node whose provider does not say which pods it has runs none, and says so.
func TestGetPods_ThatHangsOrFails_NodeIsNotReady(t *testing.T) {
	for story, fails := range map[string]bool{"hangs": false, "fails": true} {
		synctest.Test(t, func(t *testing.T) {
			provider, release := newCloud(), make(chan struct{})
			provider.setFault(func(method, _ string) error {
				switch {
				case method == "GetPods" && fails:
					return errCloud
				case method == "GetPods":
					<-release
				}
				return nil
			})
			w := runNode(t, provider)
			w.after(10 * time.Second)
			w.wantReady("GetPods "+story, v1.ConditionFalse)
			want := "the provider has not said which pods it has"
			if fails {
				want += ": " + errCloud.Error()
			}
			if got := condition(w.node(), v1.NodeReady).Message; got != want {
				t.Errorf("GetPods %s: the Node is not Ready with the message %q, want %q", story, got, want)
			}
			provider.setFault(nil)
			close(release)
			w.after(time.Minute)
			w.wantReady(fmt.Sprintf("GetPods %s no more", story), v1.ConditionTrue)
		})
	}
}
