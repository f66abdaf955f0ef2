package virtualkubelet

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/statustest"
)

// While UpdatePod fails, as in a provider that does not implement it, the status is read as before.
func TestUpdatePodFails_StatusIsStillRead(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		job := w.run("job", never)
		provider.refuses("UpdatePod")
		w.api.Change(job, func(p *v1.Pod) { p.Labels = map[string]string{"tier": "gold"} })
		w.after(time.Hour) // the back-off is at its longest
		provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 3) })
		w.after(10 * time.Second)
		w.want(job, "10 s after its end", v1.PodFailed, false)
	})
}

// While DeletePod fails, a pod in deletion that ends by itself leaves the API, and the provider is asked to remove the rest.
func TestDeletePodFails_EndIsStillSeen(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		job := w.run("job", never)
		works := provider.refuses("DeletePod")
		w.api.DeleteGracefully("default", "job", 30)
		w.after(10 * time.Minute)
		if w.api.Pod(job) == nil {
			t.Fatal("the pod is gone from the API while it runs")
		}
		provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 0) })
		w.after(2 * time.Minute)
		w.wantGone(job, "2 minutes after its end")
		works()
		w.after(10 * time.Minute)
		if _, err := provider.GetPod(t.Context(), "default", "job"); err == nil {
			t.Error("the provider still has the pod, which the API does not have")
		}
	})
}

// A call that hangs is named: the pod waits with a reason, and the log has the method.
func TestCreatePodHangs_PodSaysWhy(t *testing.T) {
	var log lockedBuffer
	release := make(chan struct{})
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		release = make(chan struct{})
		provider.setFault(func(method, name string) error {
			if method == "CreatePod" {
				<-release // whatever the context says
			}
			return nil
		})
		web := w.create("web")
		w.after(10 * time.Second)
		statuses := w.api.Pod(web).Status.ContainerStatuses
		if len(statuses) != 1 || statuses[0].State.Waiting == nil || statuses[0].State.Waiting.Message != "CreatePod of the provider has not returned yet" {
			t.Errorf("the containers are %+v, want them to wait for CreatePod", statuses)
		}
		w.after(3 * time.Minute)
		if said := log.String(); !strings.Contains(said, "a call of the provider has not returned in time") || !strings.Contains(said, "method=CreatePod pod=default/web") {
			t.Errorf("the log does not name the call:\n%s", said)
		}
		close(release)
		w.after(time.Second)
		w.want(web, "when the call returns", v1.PodRunning, true)
	}, func(w *world) {
		w.alter = func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
	})
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// blocked is a provider whose NotifyPods does not return.
type blocked struct {
	*cloud
	until chan struct{}
}

func (b *blocked) NotifyPods(context.Context, func(*v1.Pod)) { <-b.until }

func TestNotifyPodsHangs_NodeIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &blocked{newCloud(), make(chan struct{})}
		w := runNode(t, provider)
		w.after(10 * time.Second)
		w.wantReady("NotifyPods hangs", v1.ConditionFalse)
		if got := condition(w.node(), v1.NodeReady).Message; got != errNotifying.Error() {
			t.Errorf("the Node is not Ready with the message %q, want %q", got, errNotifying)
		}
		close(provider.until)
		w.after(time.Second)
		w.wantReady("NotifyPods returns", v1.ConditionTrue)
	})
}

// inner is a cluster in a cluster: its pods have UIDs and nodes of its own.
type inner struct{ *notifying }

func innerCluster() *inner {
	c := &inner{&notifying{cloud: newCloud()}}
	c.keep = func(pod *v1.Pod) *v1.Pod {
		pod.UID, pod.CreationTimestamp = "inner-"+pod.UID, metav1.Now()
		return pod
	}
	return c
}

func TestProviderWithItsOwnUIDs_KeepsItsPodsInARestart(t *testing.T) {
	for story, nodeName := range map[string]string{"no node": "", "the node": "n", "an inner node": "inner-7"} {
		t.Run(story, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := innerCluster()
				own := provider.keep
				provider.keep = func(pod *v1.Pod) *v1.Pod {
					pod.Spec.NodeName = nodeName
					return own(pod)
				}
				w := newWorld(t, provider)
				w.start()
				web, job := w.create("web"), w.create("job", never)
				w.after(20 * time.Second)
				w.want(web, "polled", v1.PodRunning, true)
				provider.change("job", func(p *v1.Pod) { p.Status = endedStatus(p, 3) })
				provider.tell("job")
				w.after(2 * time.Second)
				w.want(job, "2 s after a notification with an inner UID", v1.PodFailed, false)
				w.stop()
				time.Sleep(time.Minute)
				w.start()
				w.after(10 * time.Minute)
				w.want(web, "after the restart", v1.PodRunning, true)
				w.wantCreatedOnce(provider.cloud, web, job)
				w.wantRepair(OtherUID)
				w.end()
			})
		})
	}
}

// A list of pods that lacks some, as clouds give shortly after a creation, ends no pod.
func TestGetPodsLacksAPod_ItsStatusDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &partial{newCloud()}
		w := newWorld(t, provider)
		w.start()
		web := w.run("web")
		w.stop()
		w.start()
		w.after(10 * time.Minute)
		w.want(web, "after a restart with an empty list", v1.PodRunning, true)
		w.wantCreatedOnce(provider.cloud, web)
		w.end()
	})
}

type partial struct{ *cloud }

func (*partial) GetPods(context.Context) ([]*v1.Pod, error) { return nil, nil }

// A provider that has lost a pod, and whose errors do not say what they mean, does not keep the pod Running for good.
func TestLostPod_WithErrorsThatAreNotNotFound_Ends(t *testing.T) {
	scenario(t, func(t *testing.T, w *world, provider *cloud) {
		web := w.run("web")
		w.stop()
		provider.lose("web")
		provider.refuses("GetPodStatus")
		w.start()
		w.after(time.Minute)
		w.want(web, "a minute after the restart", v1.PodFailed, false)
	})
}

// Notifications come from many goroutines, about pods that are known, unknown, former and nil; the provider goes on to use its objects.
func TestNotificationsFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &notifying{cloud: newCloud()}
		w := newWorld(t, provider)
		w.start()
		var pods []*v1.Pod
		for i := range 20 {
			pods = append(pods, w.create(fmt.Sprint("p", i)))
		}
		w.after(time.Second)
		var notifying sync.WaitGroup
		for g := range 16 {
			notifying.Go(func() {
				for i := range 200 {
					pod := pods[(g+i)%len(pods)].DeepCopy()
					pod.Status = runningStatus(pod)
					switch i % 5 {
					case 0:
						pod.UID = "former"
					case 1:
						pod.Namespace = "elsewhere"
					case 2:
						pod.UID = ""
					case 3:
						provider.notify(nil)
					}
					provider.notify(pod)
					pod.Status.Phase, pod.Labels = "mine", map[string]string{"still": "used"}
					clear(pod.Status.ContainerStatuses)
				}
			})
		}
		notifying.Wait()
		w.after(5 * time.Second)
		for _, pod := range pods {
			w.want(pod, "after the storm", v1.PodRunning, true)
		}
		w.wantCreatedOnce(provider.cloud, pods...)
		w.end()
	})
}

// meddling is a provider that changes what it is given, and what it has returned.
type meddling struct{ *cloud }

func (m meddling) CreatePod(ctx context.Context, pod *v1.Pod) error {
	err := m.cloud.CreatePod(ctx, pod)
	meddle(pod)
	return err
}

func (m meddling) UpdatePod(ctx context.Context, pod *v1.Pod) error {
	err := m.cloud.UpdatePod(ctx, pod)
	meddle(pod)
	return err
}

func (m meddling) DeletePod(ctx context.Context, pod *v1.Pod) error {
	err := m.cloud.DeletePod(ctx, pod)
	meddle(pod)
	return err
}

func meddle(pod *v1.Pod) {
	pod.Name, pod.UID, pod.Labels = "mine", "mine", map[string]string{"mine": "true"}
	pod.Spec.Containers[0].Name, pod.Spec.NodeName = "mine", ""
	pod.Status.Phase = v1.PodFailed
}

func TestProviderChangesThePodsItIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := meddling{newCloud()}
		w := newWorld(t, provider)
		w.start()
		web := w.run("web", func(p *v1.Pod) { p.Labels = map[string]string{"app": "web"} })
		w.want(web, "created", v1.PodRunning, true)
		w.api.Change(web, func(p *v1.Pod) { p.Labels["tier"] = "gold" })
		w.after(10 * time.Minute)
		w.want(web, "updated", v1.PodRunning, true)
		if provider.updates != 1 {
			t.Errorf("%d updates, want one: the copy of what the provider was given has changed", provider.updates)
		}
		w.api.DeleteGracefully("default", "web", 30)
		w.after(time.Minute)
		w.wantGone(web, "deleted")
		w.end()
	})
}

// Statuses without anything, and none, end no pod that the provider has.
func TestEmptyStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &empty{cloud: newCloud()}
		w := newWorld(t, provider)
		w.start()
		web := w.run("web")
		provider.set(&v1.PodStatus{}, nil)
		w.after(10 * time.Minute)
		w.want(web, "an empty status", v1.PodRunning, true)
		provider.set(nil, nil)
		w.after(2 * time.Second)
		w.want(web, "none, once", v1.PodRunning, true)
		w.after(time.Minute)
		w.want(web, "none for long: virtual-kubelet's way to say that the pod is gone", v1.PodFailed, false)
		w.end()
	})
}

type empty struct {
	*cloud
	mu     sync.Mutex
	lies   bool
	status *v1.PodStatus
	err    error
}

func (e *empty) set(status *v1.PodStatus, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lies, e.status, e.err = true, status, err
}

func (e *empty) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lies {
		return e.status, e.err
	}
	return e.cloud.GetPodStatus(ctx, namespace, name)
}

// A thousand pods of a node whose clientset makes 5 requests a second: the lease does not wait for their config maps.
func TestThousandPods_OfAClientWithLimits_LeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New()
		config := api.Config()
		config.QPS, config.Burst = 5, 10 // client-go's defaults, for all groups together if they are set
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"MODE": "fast"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			api.Put(&v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("p", i))},
				Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "main", Image: "app", EnvFrom: []v1.EnvFromSource{
					{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}},
				}}}},
			})
		}
		began := time.Now()
		w := runNodeOf(t, client, &notifying{cloud: newCloud()})
		w.after(5 * time.Minute)
		running := 0
		for _, pod := range api.Pods() {
			if pod.Status.Phase == v1.PodRunning {
				running++
			}
		}
		if running != 1000 {
			t.Errorf("%d of 1,000 pods run after 5 minutes", running)
		}
		last := began
		for _, r := range api.Requests() {
			if r.Resource != "leases" || r.Verb == "GET" {
				continue
			}
			if r.At.Sub(last) > 20*time.Second {
				t.Errorf("the lease was renewed %v after the last time", r.At.Sub(last))
			}
			last = r.At
		}
		if last.Before(time.Now().Add(-20 * time.Second)) {
			t.Errorf("the lease was last renewed at %v", last)
		}
	})
}

// The API server is down at the start, and the provider works: no pod is lost or created twice.
func TestServerIsDownAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New()
		api.SetFault(statustest.Always(statustest.ErrRefused))
		client, err := kubernetes.NewForConfig(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		provider := newCloud()
		known := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "known", UID: "known"},
			Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "main", Image: "app"}}},
		}
		api.Put(known)
		if err := provider.CreatePod(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		w := runNodeOf(t, client, provider)
		w.after(time.Hour)
		if provider.creations(known) != 1 || len(provider.removed) > 0 {
			t.Fatalf("during the outage the pod was created %d times, and %v were deleted", provider.creations(known), provider.removed)
		}
		api.SetFault(nil)
		w.after(time.Minute)
		w.wantReady("a minute after the outage", v1.ConditionTrue)
		if got := api.Pod(known); got.Status.Phase != v1.PodRunning || provider.creations(known) != 1 {
			t.Errorf("after the outage the pod is %s and was created %d times", got.Status.Phase, provider.creations(known))
		}
	})
}

// Two programs run a node of one name, by mistake, with providers of their own: the pods stay alive, and the API server is not flooded.
func TestTwoNodesOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := statustest.New()
		client, err := kubernetes.NewForConfig(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		first, second := newCloud(), newCloud()
		second.keep = func(pod *v1.Pod) *v1.Pod {
			pod.Status.PodIP = "10.0.0.8"
			return pod
		}
		slow := func(method, _ string) error { // both begin before either reports: a node takes a running pod that its provider does not know for lost
			if method == "CreatePod" {
				time.Sleep(time.Second)
			}
			return nil
		}
		first.fault, second.fault = slow, slow
		w := runNodeOf(t, client, first)
		runNodeOf(t, client, second)
		w.after(10 * time.Second)
		pod := api.Put(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"},
			Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "main", Image: "app"}}},
		})
		w.after(time.Hour)
		if got := api.Pod(pod); got == nil || got.Status.Phase != v1.PodRunning {
			t.Errorf("the pod is %+v", got)
		}
		w.wantReady("two of a name", v1.ConditionTrue)
		api.ForgetRequests()
		w.after(time.Hour)
		if n := len(api.Requests()); n > 4000 {
			t.Errorf("%d requests in an hour of two nodes with one name", n)
		}
		if err := client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(5 * time.Minute)
		if api.Pod(pod) != nil || len(first.removed) != 1 || len(second.removed) != 1 {
			t.Errorf("after its deletion the pod is gone: %t; removed from the providers: %v, %v", api.Pod(pod) == nil, first.removed, second.removed)
		}
	})
}

// Nodes of one process share a registry, as prometheus.DefaultRegisterer, and a node is run again in the process.
func TestNodesShareARegisterer(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		o := Options{NodeName: "n", Provider: newCloud(), Registerer: registry, Logger: slog.New(slog.DiscardHandler)}
		o.setDefaults()
		k, err := newKubelet(o, statustest.New().Client())
		if err != nil {
			t.Fatal(err)
		}
		k.repairs.WithLabelValues(string(NoUID)).Inc()
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "statusd_provider_repairs_total" && f.Metric[0].Counter.GetValue() != 2 {
			t.Errorf("%v repairs were counted, want those of both nodes", f.Metric[0].Counter.GetValue())
		}
	}
}
