package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/runtime/process"
	"github.com/statusd/statusd/test/campaign"
)

// Kinds of pods of an upgrade, beside job.
const (
	idle     = "idle"     // runs
	flapping = "flapping" // runs, and is ready while a file exists
	guest    = "guest"    // runs, comes or goes while statusd is replaced
)

// upgradePod is what is true of a pod.
type upgradePod struct {
	name, kind string
	file       string // a job ends with the code that is written into this FIFO; a flapping pod is ready while the file exists
	unready    bool
	code       int       // of a job
	told       time.Time // when the job was asked to end; zero: the job runs
	removed    bool
}

// upgradePods are the pods of an upgrade, also the pods that were removed.
type upgradePods struct {
	admin   kubernetes.Interface
	dir     string
	created int
	ended   int

	mu  sync.Mutex // guards what follows
	all map[string]*upgradePod
}

func newUpgradePods(admin kubernetes.Interface, dir string) *upgradePods {
	return &upgradePods{admin: admin, dir: dir, all: map[string]*upgradePod{}}
}

// named are the pods of a kind that were not removed, the oldest first.
func (p *upgradePods) named(kind string) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range p.all {
		if pod.kind == kind && !pod.removed {
			names = append(names, pod.name)
		}
	}
	slices.Sort(names)
	return names
}

// truths are copies of what is true of each pod.
func (p *upgradePods) truths() []upgradePod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var truths []upgradePod
	for _, name := range slices.Sorted(maps.Keys(p.all)) {
		truths = append(truths, *p.all[name])
	}
	return truths
}

func (p *upgradePods) addAll(ctx context.Context, kind string, count int) error {
	for range count {
		if err := p.add(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

func (p *upgradePods) add(ctx context.Context, kind string) error {
	p.created++
	name := fmt.Sprintf("%s-%04d", kind, p.created)
	added := &upgradePod{name: name, kind: kind, file: filepath.Join(p.dir, name), code: p.created % 3}
	no, grace := false, int64(1)
	container := v1.Container{Name: "main", Image: process.Image, Command: []string{"sleep", "1000000"}}
	policy := v1.RestartPolicyAlways
	var err error
	switch kind {
	case job:
		policy, container.Command = v1.RestartPolicyNever, []string{"sh", "-c", "read code <" + added.file + "; exit $code"}
		err = syscall.Mkfifo(added.file, 0o666)
	case flapping:
		container.ReadinessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"test", "-e", added.file}}}, PeriodSeconds: 1, FailureThreshold: 1}
		err = os.WriteFile(added.file, nil, 0o644)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.all[name] = added
	p.mu.Unlock()
	_, err = p.admin.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{
			NodeName: nodeName, AutomountServiceAccountToken: &no, RestartPolicy: policy, TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{container},
		},
	}, metav1.CreateOptions{})
	return err
}

// remove deletes pods.
func (p *upgradePods) remove(ctx context.Context, names ...string) error {
	for _, name := range names {
		p.mu.Lock()
		p.all[name].removed = true
		p.mu.Unlock()
		if err := p.admin.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// end ends a job, once the shell of the job reads.
func (p *upgradePods) end(ctx context.Context, name string) error {
	p.mu.Lock()
	ending := p.all[name]
	p.mu.Unlock()
	var fifo *os.File
	err := campaign.Await(ctx, time.Millisecond, func() (err error) {
		fifo, err = os.OpenFile(ending.file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return err
	}
	told := time.Now()
	_, err = fifo.WriteString(strconv.Itoa(ending.code) + "\n")
	p.mu.Lock()
	ending.told = told
	p.mu.Unlock()
	p.ended++
	return errors.Join(err, fifo.Close())
}

// flip makes a pod ready that was not, or not ready.
func (p *upgradePods) flip(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	flipped := p.all[name]
	err := os.Remove(flipped.file)
	if os.IsNotExist(err) {
		err = os.WriteFile(flipped.file, nil, 0o644)
	}
	if err == nil {
		flipped.unready = !flipped.unready
	}
}

// upgradeWatch is what a watch of the API's pods has shown.
type upgradeWatch struct {
	events apiwatch.Interface
	done   chan struct{}

	mu         sync.Mutex // guards what follows
	pods       map[string]*v1.Pod
	containers map[string]string    // the first ID of each pod's container
	seen       map[string]int       // events of each pod
	ended      map[string]time.Time // when a pod was seen to have ended
	wrong      []string
}

func watchUpgrade(ctx context.Context, admin kubernetes.Interface) (*upgradeWatch, error) {
	events, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	w := &upgradeWatch{events: events, done: make(chan struct{}), pods: map[string]*v1.Pod{}, containers: map[string]string{}, seen: map[string]int{}, ended: map[string]time.Time{}}
	go func() {
		defer close(w.done)
		for event := range events.ResultChan() {
			w.take(event)
		}
	}()
	return w, nil
}

func (w *upgradeWatch) stop() {
	w.events.Stop()
	<-w.done
}

func (w *upgradeWatch) take(event apiwatch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, ok := event.Object.(*v1.Pod)
	if !ok {
		w.wrong = append(w.wrong, fmt.Sprintf("the watch of pods ended: %v", event.Object))
		return
	}
	before := w.pods[pod.Name]
	w.seen[pod.Name]++
	if w.pods[pod.Name] = pod; event.Type == apiwatch.Deleted {
		delete(w.pods, pod.Name)
	}
	if _, known := w.ended[pod.Name]; ended(pod) && !known {
		w.ended[pod.Name] = time.Now()
	}
	for _, c := range pod.Status.ContainerStatuses {
		if first := w.containers[pod.Name]; first == "" {
			w.containers[pod.Name] = c.ContainerID
		} else if c.ContainerID != first || c.RestartCount > 0 {
			w.wrong = append(w.wrong, fmt.Sprintf("pod %s has container %s with %d restarts, and had %s", pod.Name, c.ContainerID, c.RestartCount, first))
		}
	}
	if before != nil && !isNotReady(*before) && isNotReady(*pod) && pod.Spec.RestartPolicy == v1.RestartPolicyAlways && pod.Spec.Containers[0].ReadinessProbe == nil && pod.DeletionTimestamp == nil {
		w.wrong = append(w.wrong, fmt.Sprintf("pod %s lost its readiness", pod.Name))
	}
}

// all are the newest versions of the pods.
func (w *upgradeWatch) all() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.pods))
}

// writes is how often pods were written.
func (w *upgradeWatch) writes(names []string) (sum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		sum += w.seen[name]
	}
	return sum
}

// lastEnd is when the last of the pods was seen to have ended.
func (w *upgradeWatch) lastEnd(names []string) (last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if w.ended[name].After(last) {
			last = w.ended[name]
		}
	}
	return last
}

func (w *upgradeWatch) violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// compare returns in what the API is not as the truth.
func (w *upgradeWatch) compare(pods *upgradePods) (differences []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, truth := range pods.truths() {
		if difference := truth.compare(w.pods[truth.name], w.ended[truth.name]); difference != "" {
			differences = append(differences, truth.name+" "+difference)
		}
	}
	return differences
}

// compare returns in what a pod of the API, or nil, is not as it should be.
func (p *upgradePod) compare(pod *v1.Pod, seen time.Time) string {
	switch {
	case p.removed && pod == nil:
		return ""
	case p.removed:
		return "is still in the API"
	case pod == nil:
		return "is not in the API"
	case !p.told.IsZero():
		return p.compareEnd(pod, seen)
	case pod.Status.Phase != v1.PodRunning:
		return fmt.Sprintf("is %s, want Running", pod.Status.Phase)
	case isNotReady(*pod) != p.unready:
		return fmt.Sprintf("is ready: %t, want %t", !isNotReady(*pod), !p.unready)
	}
	return ""
}

func (p *upgradePod) compareEnd(pod *v1.Pod, seen time.Time) string {
	want := v1.PodSucceeded
	if p.code != 0 {
		want = v1.PodFailed
	}
	if pod.Status.Phase != want {
		return fmt.Sprintf("is %s, want %s", pod.Status.Phase, want)
	}
	for _, c := range pod.Status.ContainerStatuses {
		end := c.State.Terminated
		if end == nil || int(end.ExitCode) != p.code {
			return fmt.Sprintf("has ended as %v, want exit code %d", end, p.code)
		}
		if at := end.FinishedAt.Time; at.Before(p.told.Truncate(time.Second)) || at.After(seen) {
			return fmt.Sprintf("has ended at %s, want from %s to %s", at, p.told, seen)
		}
	}
	return ""
}
