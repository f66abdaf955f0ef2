// Package agent is the program under test: a node agent that embeds status.Manager with a journal, and does what it is sent.
//
// A process of the campaign starts it, and kills it. Commands come as lines of JSON on standard input; records go to standard output. Commands
// of one pod come one at a time, those of different pods run beside each other.
package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/status"
	"github.com/statusd/statusd/test/robustness/record"
)

// Options configure a process.
type Options struct {
	Number  int    // of the process
	Node    string // name
	Server  string // URL
	CA      []byte // of the server
	Client  string // path of the node's certificate and key, which may change
	Journal string // path
}

// Arguments reads the command line of a process: number, node, URL, file with the authority of the server, file with the node's certificate
// and key, file of the journal.
func Arguments(args []string) (o Options, err error) {
	if len(args) != 6 {
		return o, fmt.Errorf("agent: got %d arguments, want 6", len(args))
	}
	o = Options{Node: args[1], Server: args[2], Client: args[4], Journal: args[5]}
	if o.Number, err = strconv.Atoi(args[0]); err == nil {
		o.CA, err = os.ReadFile(args[3])
	}
	return o, err
}

// Verbs of commands besides those of calls.
const (
	Look  = "look"  // write a record of what the manager says of itself
	Disk  = "disk"  // change how the disk behaves
	Hoard = "hoard" // take memory until there is none
)

// Command is one line of input.
type Command struct {
	ID    int64         `json:"id"`
	Verb  string        `json:"verb"`
	UID   types.UID     `json:"uid,omitempty"`
	Facts *record.Facts `json:"facts,omitempty"`
	Disk  Behavior      `json:"disk,omitempty"`
	Wait  time.Duration `json:"wait,omitempty"` // at most, for Flush
	Calm  bool          `json:"calm,omitempty"` // nothing goes on: measure, too
	Pod   *v1.Pod       `json:"-"`              // of the UID
}

// Manager is the manager under test.
type Manager interface {
	ObservePod(*v1.Pod)
	ObserveDelete(*v1.Pod)
	SetPodStatus(*v1.Pod, v1.PodStatus) error
	SetContainerReadiness(pod *v1.Pod, containerID string, ready bool) error
	TerminatePod(*v1.Pod) error
	// Run works until the context ends, and then delivers what is left for a while.
	Run(context.Context) error
}

// Spokesman is a Manager that says what it has not delivered.
type Spokesman interface {
	Pending() []status.Pending
	Flush(context.Context) error
}

// ErrNotDurable is the error of a report that was taken, and that the manager does not remember beyond its process.
var ErrNotDurable = errors.New("not durable")

// agent is a running process.
type agent struct {
	options Options
	out     *record.Writer
	manager Manager
	disk    *disk

	mu   sync.Mutex // guards what follows
	pods map[types.UID]*v1.Pod
	more chan struct{} // closed when there are more pods

	waiting atomic.Int64 // commands of pods that the watch has not brought
}

// requestTimeout ends a request without an answer. A tenth of a usual one: faults are short here, too.
const requestTimeout = 5 * time.Second

// shutdown is how long the manager may deliver what is left.
const shutdown = 3 * time.Second

// Main runs status.Manager until the input ends or ctx does, then delivers what is left.
func Main(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	kept, err := journal.Open(o.Journal, journal.Options{NodeName: o.Node})
	if err != nil {
		return err
	}
	defer kept.Close()
	d := newDisk(kept)
	return serve(ctx, o, d, in, out, func(client kubernetes.Interface, relist func()) (Manager, error) {
		m, err := status.New(status.Options{
			Client: status.NewClient(client.CoreV1(), o.Node), Journal: d, Logger: logger(), RequestTimeout: requestTimeout, HistoryChanged: relist,
		})
		return ours{m}, err
	})
}

// Serve runs the manager that start makes, as Main runs status.Manager. It may call relist to have the pods listed again.
func Serve(ctx context.Context, o Options, in io.Reader, out io.Writer, start func(client kubernetes.Interface, relist func()) (Manager, error)) error {
	return serve(ctx, o, newDisk(nil), in, out, start)
}

// rereadCertificate is how soon a new certificate is used.
const rereadCertificate = time.Second

func serve(ctx context.Context, o Options, d *disk, in io.Reader, out io.Writer, start func(kubernetes.Interface, func()) (Manager, error)) error {
	transport.CertCallbackRefreshDuration = rereadCertificate
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: o.Server, QPS: -1, UserAgent: fmt.Sprintf("agent/%d", o.Number),
		TLSClientConfig: rest.TLSClientConfig{CAData: o.CA, CertFile: o.Client, KeyFile: o.Client},
	})
	if err != nil {
		return err
	}
	a := &agent{options: o, out: record.NewWriter(out), disk: d, pods: map[types.UID]*v1.Pod{}, more: make(chan struct{})}
	var pods *source.API
	if a.manager, err = start(client, func() { go pods.Relist() }); err != nil {
		return err
	}
	if pods, err = source.NewAPI(source.APIOptions{Client: client, NodeName: o.Node, Handle: a.observe, Logger: logger()}); err != nil {
		return err
	}
	a.note(record.Record{Kind: record.Started, Agent: o.Number})
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	parts.Go(func() { pods.Run(working) })
	go a.commands(in, cancel)
	err = a.manager.Run(working)
	parts.Wait()
	return err
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// ours is status.Manager.
type ours struct{ *status.Manager }

func (o ours) SetPodStatus(pod *v1.Pod, s v1.PodStatus) error {
	_, err := o.Manager.SetPodStatus(pod, s)
	return err
}

func (o ours) SetContainerReadiness(pod *v1.Pod, containerID string, ready bool) error {
	return o.Manager.SetContainerReadiness(pod.UID, containerID, ready)
}

func (o ours) Run(ctx context.Context) error {
	ran := make(chan error, 1)
	go func() { ran <- o.Manager.Run(context.Background()) }()
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), shutdown)
	defer cancel()
	_ = o.Manager.Shutdown(ending) // what is not delivered in time is in the journal
	return <-ran
}

func (a *agent) observe(c source.Change) {
	for _, pod := range c.Pods {
		if c.Op == source.Remove {
			a.manager.ObserveDelete(pod)
		} else {
			a.manager.ObservePod(pod)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, pod := range c.Pods {
		if c.Op == source.Remove {
			delete(a.pods, pod.UID)
		} else {
			a.pods[pod.UID] = pod
		}
	}
	close(a.more)
	a.more = make(chan struct{})
}

// note writes a record at once: a moment later the process may be killed.
func (a *agent) note(r record.Record) {
	a.out.Add(r)
	_ = a.out.Flush() // the campaign is gone, and so is this process soon
}

// observed returns a pod when the watch has brought it, which is when an agent knows of it.
func (a *agent) observed(uid types.UID) *v1.Pod {
	a.waiting.Add(1)
	defer a.waiting.Add(-1)
	for {
		a.mu.Lock()
		pod, more := a.pods[uid], a.more
		a.mu.Unlock()
		if pod != nil {
			return pod
		}
		<-more
	}
}

// commands does what the input says until it ends.
func (a *agent) commands(in io.Reader, done func()) {
	defer done()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var c Command
		if err := json.Unmarshal(line, &c); err != nil {
			slog.Error("command is not understood", "err", err)
			return
		}
		switch c.Verb {
		case Disk:
			a.disk.become(c.Disk)
		case Look:
			go a.look(c)
		case Hoard:
			go hoard()
		default:
			go a.call(c)
		}
	}
}

// hoarded is the memory that hoard has taken.
var hoarded [][]byte

// hoard takes memory until the process ends for lack of it.
func hoard() {
	for {
		hoarded = append(hoarded, bytes.Repeat([]byte{1}, 1<<20))
	}
}

// call makes one call of the manager.
func (a *agent) call(c Command) {
	c.Pod = a.observed(c.UID)
	r := record.Record{Kind: record.Call, Agent: a.options.Number, ID: c.ID, Verb: c.Verb, UID: string(c.Pod.UID), Name: c.Pod.Name, Facts: c.Facts}
	a.note(r)
	var err error
	switch c.Verb {
	case record.Run, record.Exit, record.Evict:
		err = a.manager.SetPodStatus(c.Pod, statusOf(c))
	case record.Flip:
		err = a.manager.SetContainerReadiness(c.Pod, containerID(c.Pod), c.Facts.Ready)
	case record.Terminate:
		err = a.manager.TerminatePod(c.Pod)
	default:
		err = fmt.Errorf("no such command: %q", c.Verb)
	}
	r = record.Record{Kind: record.Return, Agent: a.options.Number, ID: c.ID, Verb: c.Verb, UID: r.UID, Name: r.Name, Kept: err == nil || onlyWithheld(err)}
	if err != nil {
		r.Err, r.Warning = err.Error(), status.IsWarning(err) || errors.Is(err, ErrNotDurable)
		_, r.Over = errors.AsType[*status.PhaseError](err)
	}
	a.note(r)
}

// onlyWithheld reports whether the error has no cause but that an end is withheld from the API, which does not keep it from the journal.
func onlyWithheld(err error) bool {
	switch e := err.(type) {
	case *status.WithheldError:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(cause error) bool { return !onlyWithheld(cause) })
	case interface{ Unwrap() error }:
		return onlyWithheld(e.Unwrap())
	}
	return false
}

// look records what the manager says of itself: what was reported before Since is delivered or in Pending, and delivered if Flush ended
// without an error.
func (a *agent) look(c Command) {
	r := record.Record{Kind: record.Look, Agent: a.options.Number, ID: c.ID, Since: record.Now()}
	manager, says := a.manager.(Spokesman)
	if !says {
		manager = silent{a}
	}
	for _, p := range manager.Pending() {
		r.Pending = append(r.Pending, string(p.UID))
	}
	if c.Wait > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), c.Wait)
		defer cancel()
		r.Flushed = manager.Flush(ctx) == nil
	}
	if c.Calm {
		r.Measures = a.measures()
	}
	a.note(r)
}

// silent claims nothing: any pod may be pending.
type silent struct{ *agent }

func (s silent) Pending() (all []status.Pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range s.pods {
		all = append(all, status.Pending{UID: uid})
	}
	return all
}

func (silent) Flush(context.Context) error { return errors.ErrUnsupported }

const (
	// fewGoroutines is what an agent without work has at most, and idleWithin how soon after its work: a request that hangs
	// ends by then.
	fewGoroutines, idleWithin = 60, 2 * requestTimeout
)

// measures are what the process needs when its work has ended.
func (a *agent) measures() map[string]int64 {
	goroutines := func() int64 { return int64(runtime.NumGoroutine()) - a.waiting.Load() }
	for until := time.Now().Add(idleWithin); goroutines() > fewGoroutines && time.Now().Before(until); {
		time.Sleep(100 * time.Millisecond)
	}
	if goroutines() > fewGoroutines {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	m := map[string]int64{"goroutines": goroutines(), "heapKiB": int64(memory.HeapAlloc >> 10)}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		m["descriptors"] = int64(len(files))
	}
	if files, err := filepath.Glob(a.options.Journal + "*"); err == nil {
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				m["journalKiB"] += info.Size() >> 10
			}
		}
	}
	return m
}

func containerID(pod *v1.Pod) string { return "process://" + string(pod.UID) }

// statusOf is the whole status that a command reports.
func statusOf(c Command) v1.PodStatus {
	pod, f := c.Pod, c.Facts
	s := v1.PodStatus{
		Phase: f.Phase, Message: record.Message(f.Number), HostIP: "127.0.0.1", HostIPs: []v1.HostIP{{IP: "127.0.0.1"}},
		PodIP: "10.1.2.3", PodIPs: []v1.PodIP{{IP: "10.1.2.3"}},
	}
	container := v1.ContainerStatus{Name: "main", Image: "example.com/main:1", ImageID: "example.com/main@sha256:1", ContainerID: containerID(pod), Ready: f.Ready}
	switch c.Verb {
	case record.Evict:
		s.Reason = "Evicted"
		return s
	case record.Exit:
		container.State.Terminated = &v1.ContainerStateTerminated{ExitCode: f.Exit, Reason: "Completed", ContainerID: containerID(pod)}
	default:
		started := true
		container.Started, container.State.Running = &started, &v1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}
	}
	s.ContainerStatuses = []v1.ContainerStatus{container}
	s.Conditions = conditions(pod, &s)
	return s
}
