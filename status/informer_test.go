package status

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/statustest"
)

// podList is what an informer lists and watches. The watch delivers only what is sent to it.
type podList struct {
	api     *statustest.Server
	watches chan *watch.FakeWatcher
}

func (l *podList) List(metav1.ListOptions) (runtime.Object, error) {
	list := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, pod := range l.api.Pods() {
		list.Items = append(list.Items, *pod)
	}
	return list, nil
}

func (l *podList) Watch(metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(100, false)
	l.watches <- w
	return w, nil
}

// IsWatchListSemanticsUnSupported has the informer list first and then watch.
func (l *podList) IsWatchListSemanticsUnSupported() bool { return true }

// Two virtual nodes share an informer of all pods and a registry. What happens while the watch is
// interrupted (a pod is deleted, another one is deleted and created again) comes with the next list, as
// a deletion without the newest object, and as an update from one UID to another.
func TestTwoManagersOnOneInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, memory := prometheus.NewRegistry(), journal.NewMemory()
		worlds := map[string]*world{}
		api := statustest.New()
		source := &podList{api: api, watches: make(chan *watch.FakeWatcher, 10)}
		informer := toolscache.NewSharedInformer(source, &v1.Pod{}, 0)
		for _, node := range []string{"a", "b"} {
			w := newWorld(t, withJournal(memory), func(o *Options) {
				o.Pods, o.Client, o.Registerer, o.MetricsLabels = nil, api, registry, prometheus.Labels{"node": node}
			})
			w.api, w.table = api, w.manager.table
			worlds[node] = w
			_, err := informer.AddEventHandler(toolscache.FilteringResourceEventHandler{
				FilterFunc: func(object any) bool {
					if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
						object = missed.Obj
					}
					return object.(*v1.Pod).Spec.NodeName == node
				},
				Handler: w.manager.EventHandler(),
			})
			must(err)
		}
		on := func(name, node string, uid types.UID) *v1.Pod {
			return api.Put(newPod(name, restartNever, func(p *v1.Pod) { p.Spec.NodeName, p.UID = node, uid }))
		}
		stays, deleted, replaced := on("stays", "a", "1"), on("deleted", "a", "2"), on("replaced", "b", "3")
		go informer.RunWithContext(t.Context())
		worlds["a"].run()
		worlds["b"].run()
		synctest.Wait()
		for pod, node := range map[*v1.Pod]string{stays: "a", deleted: "a", replaced: "b"} {
			worlds[node].set(pod, running(pod, true))
		}
		synctest.Wait()

		api.Remove("ns", "deleted")
		api.Remove("ns", "replaced")
		next := on("replaced", "b", "4")
		(<-source.watches).Stop()
		time.Sleep(time.Minute)
		for node, w := range worlds {
			if got := w.manager.table.All(); len(got) != 1 {
				t.Errorf("node %s knows %d pods, want 1", node, len(got))
			}
		}
		if got := worlds["a"].manager.Statuses(); len(got) != 1 || got[0].Name != "stays" {
			t.Errorf("node a has %d statuses, want that of the pod that stays", len(got))
		}
		if got := worlds["b"].manager.Statuses(); len(got) != 0 {
			t.Errorf("node b has the status of %s", got[0].UID)
		}
		worlds["b"].set(next, running(next, true))
		synctest.Wait()
		if got := api.Pod(next).Status.Phase; got != v1.PodRunning {
			t.Errorf("the pod that took the name is %s in the API, want Running", got)
		}
	})
}
