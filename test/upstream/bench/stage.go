package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/status"
)

// stage is one run on the server: a namespace with pods on the node, a manager that knows
// them, the watch of the node that feeds it, and a witness.
type stage struct {
	lab       *lab
	namespace string
	pods      []*v1.Pod
	first     *v1.Pod   // one more: Running and Ready in the API when the run begins
	serving   []*v1.Pod // first, and as many others like it as asked for
	side      side
	begun     time.Time             // when the last burst began
	config    *rest.Config          // of the node, without a limit
	client    *kubernetes.Clientset // with this configuration
	manager   manager               // nil if the ceiling is measured
	counter   counter
	witness   *witness
	closers   []func() error
}

// circumstances of a run: how many pods, how long a round trip, and the limit of requests.
type circumstances struct {
	pods int
	// serving is how many pods more are Running and Ready when the run begins, besides the first.
	serving   int
	roundTrip time.Duration
	limit     limit
	// delivered, if set, is called after the manager has been told of what the watch of
	// the node has delivered, from the goroutine of that watch.
	delivered func(watch.EventType, *v1.Pod)
}

// newStage prepares a run. All is known and connected when it returns, a first status has
// gone all the way, and the machine is idle.
func (l *lab) newStage(ctx context.Context, s side, c circumstances) (_ *stage, err error) {
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	st := &stage{lab: l, side: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close(ctx))
		}
	}()
	if err := st.createPods(ctx, c.pods, c.serving+1); err != nil {
		return nil, err
	}
	config, cut, err := l.nodeConfig(c.roundTrip)
	if err != nil {
		return nil, err
	}
	st.closers = append(st.closers, func() error { cut(); return nil })
	if err := st.connect(ctx, s, config, c); err != nil {
		return nil, err
	}
	st.witness, err = newWitness(ctx, l.admin, st.namespace)
	if err != nil {
		return nil, err
	}
	st.closers = append(st.closers, st.witness.stop)
	if err := st.sayFirst(ctx); err != nil {
		return nil, err
	}
	// A budget that the first ones have used is full again.
	if c.limit.qps > 0 {
		time.Sleep(time.Duration(float64(c.limit.burst) / c.limit.qps * float64(time.Second)))
	}
	st.counter.reset()
	return st, l.calm(ctx)
}

func (st *stage) createPods(ctx context.Context, starting, serving int) error {
	namespace, err := st.lab.admin.CoreV1().Namespaces().Create(ctx,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	st.namespace = namespace.Name
	st.closers = append(st.closers, func() error {
		return st.lab.admin.CoreV1().Pods(st.namespace).DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{})
	})
	all := make([]*v1.Pod, starting+serving)
	err = parallel(ctx, len(all), 48, func(i int) (err error) {
		all[i], err = st.create(ctx, i)
		return err
	})
	st.first, st.serving, st.pods = all[0], all[:serving], all[serving:]
	return err
}

// create makes the pod of that number in the API.
func (st *stage) create(ctx context.Context, number int) (*v1.Pod, error) {
	pod := podOn(st.namespace, fmt.Sprintf("pod-%06d", number))
	return st.lab.admin.CoreV1().Pods(st.namespace).Create(ctx, pod, metav1.CreateOptions{})
}

// connect makes the manager of a side and the watch that feeds it. The ceiling has the
// watch too, since it costs the server something.
func (st *stage) connect(ctx context.Context, s side, config *rest.Config, c circumstances) error {
	st.config = config
	counted := rest.CopyConfig(config)
	counted.Wrap(st.counter.wrap)
	if s == upstream && c.limit.qps > 0 {
		counted.QPS, counted.Burst = float32(c.limit.qps), c.limit.burst
	}
	clientset, err := kubernetes.NewForConfig(counted)
	if err != nil {
		return err
	}
	switch s {
	case statusd, throughput:
		st.manager = newOursFor(s, status.NewClient(clientset.CoreV1(), nodeName), c.limit)
	case upstream:
		st.manager = newTheirs(clientset)
	}
	st.client = clientset
	known := make(map[string]bool)
	allKnown := make(chan struct{})
	all := len(st.pods) + len(st.serving)
	handle := func(event watch.EventType, pod *v1.Pod) {
		st.deliver(event, pod)
		if c.delivered != nil {
			c.delivered(event, pod)
		}
		if pod.Namespace == st.namespace && len(known) < all {
			if known[pod.Name] = true; len(known) == all {
				close(allKnown)
			}
		}
	}
	watcher, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	stop, err := watchPods(ctx, watcher, v1.NamespaceAll, metav1.ListOptions{FieldSelector: "spec.nodeName=" + nodeName}, handle)
	if err != nil {
		return err
	}
	st.closers = append(st.closers, stop)
	select {
	case <-allKnown:
	case <-ctx.Done():
		return ctx.Err()
	}
	if st.manager != nil {
		st.manager.start(ctx)
		st.closers = append(st.closers, func() error { st.manager.stop(); return nil })
	}
	return nil
}

// sayFirst brings the status of the first pod, and then of the others that serve, to the API,
// so that connections are open and the manager has taken up its work when the run begins.
func (st *stage) sayFirst(ctx context.Context) error {
	for _, pods := range [][]*v1.Pod{st.serving[:1], st.serving[1:]} {
		var sightings []*sighting
		for _, pod := range pods {
			sightings = append(sightings, st.witness.expect(pod.UID, seenReady))
			if st.manager != nil {
				st.manager.setPodStatus(pod, running(pod, true, 0))
			} else if err := st.patch(ctx, pod, patchToRunning(pod)); err != nil {
				return err
			}
		}
		if _, err := last(ctx, sightings); err != nil {
			return err
		}
	}
	return nil
}

// deliver passes what the watch of the node has brought on to the manager.
func (st *stage) deliver(event watch.EventType, pod *v1.Pod) {
	switch {
	case st.manager == nil:
	case event == watch.Deleted:
		st.manager.forget(pod)
	default:
		st.manager.know(pod)
	}
}

// close ends the run in reverse order.
func (st *stage) close(ctx context.Context) error {
	var problems []error
	for i := len(st.closers) - 1; i >= 0; i-- {
		problems = append(problems, st.closers[i]())
	}
	if err := ctx.Err(); err != nil {
		return err // and nothing else was to be expected
	}
	return errors.Join(problems...)
}
