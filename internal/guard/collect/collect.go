package collect

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/internal/bounded"
	"github.com/statusd/statusd/internal/diskspace"
	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/nodeclient"
)

// Options configure a [Collector]. Facts of an empty field are unknown.
type Options struct {
	// Service is the kubelet's.
	Service guard.Service
	// Healthz is the URL of the kubelet's loopback endpoint.
	Healthz string
	// Server is the URL of the kubelet's server, as in https://127.0.0.1:10250; ServerClient has the credentials.
	Server       string
	ServerClient *http.Client
	// Client and Node are for the lease; an answer about the lease shows that the API server answers.
	Client kubernetes.Interface
	Node   string
	// Runtime is the CRI socket, as in unix:///run/containerd/containerd.sock.
	Runtime string
	// Root is the kubelet's root directory, whose disk must be writable.
	Root string
	// Certificate is a file of the host with the kubelet's client certificate; the root of the host is mounted at HostRoot.
	Certificate, HostRoot string
	// Behind, Lists, Maintenance and ShuttingDown are called at each look, if they are set: the findings of an audit, whether the
	// runtime answers its lists, the annotation of the Node, and whether the machine shuts down.
	Behind       func(now time.Time) guard.Fact[guard.Behind]
	Lists        func(now time.Time) guard.Fact[guard.Answer]
	Maintenance  func(now time.Time) guard.Fact[guard.Maintenance]
	ShuttingDown func() bool
	// Timeout is how long a source may take; 2 s if 0.
	Timeout time.Duration
}

// PaceAPI is the interval of requests to the API server: the kubelet's interval of lease renewals, because a large cluster has
// many guards.
const PaceAPI = 10 * time.Second

// The intervals. Sources that are cheap and change at once are read at each look.
const (
	everyLook    = 0
	pacePart     = 10 * time.Second
	paceMetrics  = 15 * time.Second
	paceRuntime  = 4 * time.Second
	paceDisk     = 5 * time.Second
	paceCert     = 30 * time.Second
	defaultLimit = 2 * time.Second
)

// notConfigured is why a fact is not known that is not asked for.
const notConfigured = "not configured"

// Collector reads evidence. Use it from one goroutine at a time.
type Collector struct {
	o       Options
	sources []*source
	http    *http.Client
	cri     *grpc.ClientConn // nil without a runtime
	metrics metrics
	renewed renewal
	now     func() time.Time // by which sources are due
	// The files may be on disks that hang.
	disk, certificate *bounded.Calls
	space             func(path string) (diskspace.Space, error)

	mu   sync.Mutex // guards last while sources are read
	last guard.Evidence
}

// source is one thing to ask.
type source struct {
	every time.Duration
	due   time.Time
	// ask returns true if the source must be read again at the next look: bad answers are confirmed
	// soon.
	ask func(ctx context.Context, now time.Time) (again bool)
}

// New makes a collector. It connects to nothing.
func New(o Options) (*Collector, error) {
	if o.Timeout == 0 {
		o.Timeout = defaultLimit
	}
	c := &Collector{
		o: o, http: plainClient(), now: time.Now, disk: bounded.New(), certificate: bounded.New(), space: diskspace.Of,
	}
	if o.Runtime != "" {
		conn, err := nodeclient.Runtime(o.Runtime)
		if err != nil {
			return nil, err
		}
		c.cri = conn
	}
	c.last = guard.Evidence{
		Process: unknown[guard.Process](), Healthz: unknown[guard.Answer](), Lease: unknown[guard.Lease](),
		PLEG: unknown[guard.PLEG](), Operations: unknown[guard.Operations](), Runtime: unknown[guard.Answer](),
		Behind: unknown[guard.Behind](), APIServer: unknown[guard.Answer](), Disk: unknown[guard.Disk](),
		Certificate: unknown[time.Time](), ShuttingDown: unknown[bool](), Lists: unknown[guard.Answer](),
		Writes: unknown[guard.Answer](), Requests: unknown[guard.Requests](), Maintenance: unknown[guard.Maintenance](),
	}
	c.add(o.Service != nil, everyLook, c.askProcess)
	c.add(o.Healthz != "", everyLook, c.askHealthz)
	c.add(o.Server != "" && o.ServerClient != nil, pacePart, c.askParts)
	c.add(o.Server != "" && o.ServerClient != nil, paceMetrics, c.askMetrics)
	c.add(o.Client != nil, PaceAPI, c.askLease)
	c.add(o.Client != nil, PaceAPI, c.askWrites)
	c.add(o.Runtime != "", paceRuntime, c.askRuntime)
	c.add(o.Root != "", paceDisk, c.askDisk)
	c.add(o.Certificate != "", paceCert, c.askCertificate)
	c.add(o.Behind != nil, everyLook, told(c, o.Behind, func(e *guard.Evidence, f guard.Fact[guard.Behind]) { e.Behind = f }))
	c.add(o.Lists != nil, everyLook, told(c, o.Lists, func(e *guard.Evidence, f guard.Fact[guard.Answer]) { e.Lists = f }))
	c.add(o.Maintenance != nil, everyLook, told(c, o.Maintenance, func(e *guard.Evidence, f guard.Fact[guard.Maintenance]) { e.Maintenance = f }))
	c.add(o.ShuttingDown != nil, everyLook, c.askShutdown)
	return c, nil
}

func unknown[T any]() guard.Fact[T] { return guard.NotKnown[T](time.Time{}, notConfigured) }

func (c *Collector) add(wanted bool, every time.Duration, ask func(context.Context, time.Time) bool) {
	if wanted {
		c.sources = append(c.sources, &source{every: every, ask: ask})
	}
}

// Collect reads the due sources concurrently, and returns the known facts. Collect takes as long as the
// timeout of the slowest source, and leaves nothing running except a request to a hanging disk.
func (c *Collector) Collect(ctx context.Context) guard.Evidence {
	now := c.now()
	var asked sync.WaitGroup
	for _, s := range c.sources {
		if now.Before(s.due) {
			continue
		}
		s.due = now.Add(s.every)
		asked.Go(func() {
			limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
			defer cancel()
			if s.ask(limited, now) {
				s.due = now
			}
		})
	}
	asked.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Close ends the connections that are kept.
func (c *Collector) Close() {
	if c.cri != nil {
		_ = c.cri.Close()
	}
	c.http.CloseIdleConnections()
	if c.o.ServerClient != nil {
		c.o.ServerClient.CloseIdleConnections()
	}
}

// told is a source that a part of this process knows already.
func told[T any](c *Collector, ask func(time.Time) guard.Fact[T], set func(*guard.Evidence, guard.Fact[T])) func(context.Context, time.Time) bool {
	return func(_ context.Context, now time.Time) bool {
		fact := ask(now)
		c.set(func(e *guard.Evidence) { set(e, fact) })
		return false
	}
}

// set changes the known facts.
func (c *Collector) set(change func(e *guard.Evidence)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.last)
}
