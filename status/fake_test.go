package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// fakeAPI is a scripted API server for unit tests. It applies, completes and refuses patches
// as the real one does (see serve), and answers late, wrongly or not at all if the script
// says so (see fake_faults_test.go).
type fakeAPI struct {
	// writing is held while a change is stored and the watch hears of it, so that the watch
	// hears of changes in their order. It is taken before mu.
	writing sync.Mutex

	mu       sync.Mutex
	pods     map[string]*v1.Pod
	version  int
	requests []*sent
	lists    int // requests for all pods, never forgotten
	inFlight map[string]int
	// node, if set, is the node whose user makes the requests: the server then denies it
	// the pods of others, and does not tell it what is not there.
	node string
	// latency is how long a request takes.
	latency time.Duration
	// script, if set, decides on a request before it is served: an error is the answer.
	script func(ctx context.Context, s sent) error
	// mutate, if set, changes a patched pod before it is stored, as a webhook would.
	mutate func(*v1.Pod)
	// watch, if set, is told of each stored pod, and removed of each that is no more.
	watch   func(*v1.Pod)
	removed func(*v1.Pod)
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
	if s.verb == "LIST" {
		f.lists++
	}
	whose := s.name + " " + string(s.uid) // two pods that had one name in turn are two
	f.inFlight[whose]++
	if f.inFlight[whose] > 1 && s.uid != "" { // a read says only the name
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
	var list []v1.Pod
	for _, pod := range f.all() {
		if f.node == "" || f.node == pod.Spec.NodeName {
			list = append(list, *pod)
		}
	}
	return list, nil
}

func (f *fakeAPI) Get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	end, err := f.begin(ctx, sent{verb: "GET", name: namespace + "/" + name})
	if err != nil {
		return nil, err
	}
	pod, err := f.find(namespace, name)
	if f.node != "" && (err != nil || pod.Spec.NodeName != f.node) {
		pod, err = nil, deniedByNodeAuthorizer("get", namespace, name)
	}
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
	pod, err := f.patch(namespace, name, uid.Metadata.UID, patch)
	end(err)
	return pod, err
}

func (f *fakeAPI) Delete(ctx context.Context, namespace, name string, uid types.UID) error {
	end, err := f.begin(ctx, sent{verb: "DELETE", name: namespace + "/" + name, uid: uid})
	if err != nil {
		return err
	}
	pod, err := f.find(namespace, name)
	switch {
	case err != nil:
	case f.node != "" && pod.Spec.NodeName != f.node:
		err = boundElsewhere("delete pods", name)
	case pod.UID != uid:
		err = apierrors.NewConflict(podResource, name, errors.New("precondition failed: UID"))
	default:
		f.remove(namespace, name)
	}
	end(err)
	return err
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

// setWatch has a function told of each stored pod from now on; nil ends that.
func (f *fakeAPI) setWatch(watch func(*v1.Pod)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = watch
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
