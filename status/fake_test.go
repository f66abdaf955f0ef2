package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/statusd/statusd/pods"
	"github.com/statusd/statusd/podstatus"
)

var podResource = schema.GroupResource{Resource: "pods"}

// sent is a request that the fake API has received.
type sent struct {
	verb string
	name string // namespace/name
	uid  types.UID
	at   time.Time
	body string
	err  error
}

func (s sent) String() string { return s.verb + " " + s.name }

// fakeAPI is a scripted API server for unit tests: it applies patches as the real one
// does, and answers late, wrongly or not at all if the script says so.
type fakeAPI struct {
	mu       sync.Mutex
	pods     map[string]*v1.Pod
	version  int
	requests []*sent
	inFlight map[string]int
	// latency is how long a request takes.
	latency time.Duration
	// script, if set, decides on a request before it is served: an error is the answer.
	script func(ctx context.Context, s sent) error
	// mutate, if set, changes a patched pod before it is stored, as a webhook would.
	mutate func(*v1.Pod)
	// watch, if set, is told of each stored pod.
	watch func(*v1.Pod)
	// overlap is set when two requests for one pod were in flight at once.
	overlap []string
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{pods: make(map[string]*v1.Pod), inFlight: make(map[string]int)}
}

var errHang = errors.New("hang until the request is given up")

func (f *fakeAPI) begin(ctx context.Context, s sent) (end func(error), err error) {
	s.at = time.Now()
	f.mu.Lock()
	received := &s
	f.requests = append(f.requests, received)
	whose := s.name + " " + string(s.uid) // two pods that had one name in turn are two
	f.inFlight[whose]++
	if f.inFlight[whose] > 1 {
		f.overlap = append(f.overlap, s.String())
	}
	script, latency := f.script, f.latency
	f.mu.Unlock()
	end = func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inFlight[whose]--
		received.err = err
	}
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
			end(ctx.Err())
			return nil, ctx.Err()
		}
	}
	if script != nil {
		if err := script(ctx, s); errors.Is(err, errHang) {
			<-ctx.Done()
			end(ctx.Err())
			return nil, ctx.Err()
		} else if err != nil {
			end(err)
			return nil, err
		}
	}
	return end, nil
}

func (f *fakeAPI) List(ctx context.Context) ([]v1.Pod, error) {
	end, err := f.begin(ctx, sent{verb: "LIST"})
	if err != nil {
		return nil, err
	}
	defer end(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []v1.Pod
	for _, pod := range f.pods {
		list = append(list, *pod.DeepCopy())
	}
	return list, nil
}

func (f *fakeAPI) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	end, err := f.begin(ctx, sent{verb: "GET", name: namespace + "/" + name})
	if err != nil {
		return nil, err
	}
	pod, err := f.find(namespace, name)
	end(err)
	return pod, err
}

func (f *fakeAPI) find(namespace, name string) (*v1.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pod, ok := f.pods[namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(podResource, name)
	}
	return pod.DeepCopy(), nil
}

func (f *fakeAPI) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (*v1.Pod, error) {
	var uid struct {
		Metadata struct{ UID types.UID }
	}
	if err := json.Unmarshal(patch, &uid); err != nil {
		panic(fmt.Sprintf("the patch is not JSON: %v: %s", err, patch))
	}
	end, err := f.begin(ctx, sent{verb: "PATCH", name: namespace + "/" + name, uid: uid.Metadata.UID, body: string(patch)})
	if err != nil {
		return nil, err
	}
	pod, err := f.find(namespace, name)
	if err == nil && uid.Metadata.UID != pod.UID {
		err = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), uid.Metadata.UID, "field is immutable")})
	}
	if err != nil {
		end(err)
		return nil, err
	}
	before, err := json.Marshal(pod)
	must(err)
	after, err := strategicpatch.StrategicMergePatch(before, patch, &v1.Pod{})
	must(err)
	patched := &v1.Pod{}
	must(json.Unmarshal(after, patched))
	if mutate := f.mutation(); mutate != nil {
		mutate(patched)
	}
	patched = f.put(patched)
	end(nil)
	return patched.DeepCopy(), nil
}

func (f *fakeAPI) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	end, err := f.begin(ctx, sent{verb: "DELETE", name: namespace + "/" + name, uid: uid})
	if err != nil {
		return err
	}
	pod, err := f.find(namespace, name)
	if err == nil && pod.UID != uid {
		err = apierrors.NewConflict(podResource, name, errors.New("precondition failed: UID"))
	}
	if err == nil {
		f.remove(namespace, name)
	}
	end(err)
	return err
}

// put stores a pod as a new version and tells the watch.
func (f *fakeAPI) put(pod *v1.Pod) *v1.Pod {
	f.mu.Lock()
	f.version++
	pod = pod.DeepCopy()
	pod.ResourceVersion = strconv.Itoa(f.version)
	f.pods[pod.Namespace+"/"+pod.Name] = pod
	watch := f.watch
	f.mu.Unlock()
	if watch != nil {
		watch(pod.DeepCopy())
	}
	return pod
}

func (f *fakeAPI) remove(namespace, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, namespace+"/"+name)
}

// pod returns the API's pod, nil if there is none.
func (f *fakeAPI) pod(pod *v1.Pod) *v1.Pod {
	found, err := f.find(pod.Namespace, pod.Name)
	if err != nil {
		return nil
	}
	return found
}

// log returns the requests as "VERB namespace/name", without the first list.
func (f *fakeAPI) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var log []string
	for _, s := range f.requests {
		if s.verb != "LIST" {
			log = append(log, s.String())
		}
	}
	return log
}

func (f *fakeAPI) sent() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]sent, len(f.requests))
	for i, s := range f.requests {
		list[i] = *s
	}
	return list
}

func (f *fakeAPI) count(verb string) int {
	n := 0
	for _, s := range f.sent() {
		if s.verb == verb {
			n++
		}
	}
	return n
}

func (f *fakeAPI) forgetLog() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = nil
}

// setMutate has a function change patched pods from now on; nil ends that.
func (f *fakeAPI) setMutate(mutate func(*v1.Pod)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mutate = mutate
}

func (f *fakeAPI) mutation() func(*v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mutate
}

func (f *fakeAPI) setScript(script func(context.Context, sent) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = script
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// world is a manager with its fake API and its table of pods, inside a synctest bubble.
type world struct {
	*testing.T
	api      *fakeAPI
	table    *pods.Table
	manager  *Manager
	registry *prometheus.Registry
	stop     func()
}

// newWorld makes a manager whose watch works: what the API stores is observed. Run is not
// called yet.
func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{T: t, api: newFakeAPI(), table: pods.New(), registry: prometheus.NewRegistry()}
	options := Options{Client: w.api, Pods: w.table, Registerer: w.registry}
	for _, c := range change {
		c(&options)
	}
	manager, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w.manager = manager
	w.api.watch = w.deliver
	return w
}

// deliver is the watch: the table first, then the manager.
func (w *world) deliver(pod *v1.Pod) {
	w.table.Set(pod)
	w.manager.ObservePod(pod)
}

// run starts Run; it is stopped, and checked to have stopped, when the test ends.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- w.manager.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.Errorf("Run returned %v, want nil", err)
			}
		})
	}
	w.Cleanup(w.stop)
	synctest.Wait()
	w.api.forgetLog()
}

// create puts a pod into the API and the table.
func (w *world) create(name string, edits ...func(*v1.Pod)) *v1.Pod {
	w.Helper()
	pod := newPod(name, edits...)
	w.api.put(pod)
	pod, _ = w.api.find(pod.Namespace, pod.Name)
	w.table.Set(pod)
	return pod
}

func (w *world) set(pod *v1.Pod, status v1.PodStatus) {
	w.Helper()
	if _, err := w.manager.SetPodStatus(pod, status); err != nil {
		w.Errorf("SetPodStatus(%s): %v", pod.Name, err)
	}
}

// wantLog compares the requests so far and forgets them.
func (w *world) wantLog(story string, want ...string) {
	w.Helper()
	synctest.Wait()
	if got := w.api.log(); !slices.Equal(got, want) {
		w.Errorf("%s:\n got requests %s\nwant requests %s", story, list(got), list(want))
	}
	w.api.forgetLog()
}

func list(lines []string) string {
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, ", ")
}

func (w *world) wantNothingPending() {
	w.Helper()
	if pending := w.manager.Pending(); len(pending) > 0 {
		w.Errorf("still pending: %+v", pending)
	}
}

func newPod(name string, edits ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), Generation: 1},
		Spec: v1.PodSpec{
			NodeName:      "node",
			RestartPolicy: v1.RestartPolicyAlways,
			Containers:    []v1.Container{{Name: "main", Image: "host"}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func restartNever(pod *v1.Pod) { pod.Spec.RestartPolicy = v1.RestartPolicyNever }

func deleting(pod *v1.Pod) {
	now := metav1.Now()
	grace := int64(30)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
}

// running is the status of a pod whose one container runs and is ready or not.
func running(pod *v1.Pod, ready bool) v1.PodStatus {
	started := true
	status := v1.PodStatus{
		Phase: v1.PodRunning,
		PodIP: "10.0.0.1", PodIPs: []v1.PodIP{{IP: "10.0.0.1"}},
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", Image: "host", ContainerID: "process://" + string(pod.UID), Ready: ready, Started: &started,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(1000, 0))}},
		}},
	}
	return withConditions(pod, status)
}

// ended is the status of a pod whose one container has ended.
func ended(pod *v1.Pod, exitCode int32) v1.PodStatus {
	status := v1.PodStatus{
		Phase: v1.PodSucceeded,
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", Image: "host", ContainerID: "process://" + string(pod.UID),
			State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: exitCode, Reason: "Completed", ContainerID: "process://" + string(pod.UID)}},
		}},
	}
	if exitCode != 0 {
		status.Phase = v1.PodFailed
		status.ContainerStatuses[0].State.Terminated.Reason = "Error"
	}
	return withConditions(pod, status)
}

func withConditions(pod *v1.Pod, status v1.PodStatus) v1.PodStatus {
	status.Conditions = []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.PodInitialized, Status: v1.ConditionTrue},
		podstatus.ContainersReady(pod, status.ContainerStatuses, status.Phase),
		podstatus.Ready(pod, nil, status.ContainerStatuses, status.Phase),
	}
	return status
}

// counter returns the sum of a counter over all labels.
func (w *world) counter(name string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		total := 0.0
		for _, m := range family.GetMetric() {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
		return total
	}
	w.Fatalf("there is no metric %s", name)
	return 0
}

// all returns the API's pods, by name.
func (f *fakeAPI) all() []*v1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*v1.Pod
	for _, name := range slices.Sorted(maps.Keys(f.pods)) {
		all = append(all, f.pods[name].DeepCopy())
	}
	return all
}
