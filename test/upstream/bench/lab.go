package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/controlplane"
	"github.com/statusd/statusd/test/upstream/bench/slowlink"
)

// lab is where the scenarios take place: a directory on disk and, from the first scenario
// that needs one, an API server with a node.
type lab struct {
	quick bool
	// patience is how long a run waits for the machine to become idle.
	patience time.Duration
	// workDir is on the same file system as the repository, since in some systems that
	// for temporary files has no disk under it.
	workDir string
	log     io.Writer

	server *controlplane.Process
	admin  *kubernetes.Clientset
}

// limit is a limit of requests; zero: unlimited.
type limit struct {
	qps   float64
	burst int
}

func newLab(buildDir string, o options, log io.Writer) (*lab, error) {
	if err := os.MkdirAll(buildDir, 0o755); err != nil {
		return nil, err
	}
	workDir, err := os.MkdirTemp(buildDir, "bench-work-")
	if err != nil {
		return nil, err
	}
	return &lab{quick: o.quick, patience: o.patience, workDir: workDir, log: log}, nil
}

func (l *lab) close() error {
	var err error
	if l.server != nil {
		err = l.server.Kill() // its data is not used again
	}
	return errors.Join(err, os.RemoveAll(l.workDir))
}

// open starts the server unless it runs.
func (l *lab) open(ctx context.Context) error {
	if l.server != nil {
		return nil
	}
	fmt.Fprintln(l.log, "  starting the API server")
	server, err := controlplane.Start(ctx, controlplane.Options{DataDir: filepath.Join(l.workDir, "controlplane"), Log: l.log})
	if err != nil {
		return err
	}
	l.server = server
	if l.admin, err = kubernetes.NewForConfig(protobuf(server.AdminConfig())); err != nil {
		return err
	}
	_, err = l.admin.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return l.warmUp(ctx)
}

// warmUp makes requests that are not measured: a server that has just started is slow
// for some thousands of them, which would count against the side that is measured first.
func (l *lab) warmUp(ctx context.Context) error {
	fmt.Fprintln(l.log, "  warming it up")
	for range 4 {
		if err := l.warmUpOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) warmUpOnce(ctx context.Context) (err error) {
	st, err := l.newStage(ctx, "fixed 48", l.scaled(circumstances{pods: 1000}))
	if err != nil {
		return err
	}
	defer func() { err = closing(ctx, st, err) }()
	_, err = st.burst(ctx)
	return err
}

// protobuf sets the content type that the kubelet uses.
func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

// nodeConfig is for a client of the node, with a round trip as long as asked for. It
// returns what ends the long way to the server.
func (l *lab) nodeConfig(roundTrip time.Duration) (*rest.Config, func(), error) {
	config, err := l.server.NodeConfig(nodeName)
	if err != nil {
		return nil, nil, err
	}
	protobuf(config)
	if roundTrip == 0 {
		return config, func() {}, nil
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, err
	}
	link, err := slowlink.Listen(server.Host, roundTrip/2)
	if err != nil {
		return nil, nil, err
	}
	server.Host = link.Address()
	config.Host = server.String()
	return config, link.Close, nil
}

// counter notes the requests of a client.
type counter struct {
	mu sync.Mutex // guards what follows
	// requests counts all requests, writes the changes.
	requests, writes int
	// sent is when the last patch of a pod was sent, by its path; took how long patches took.
	sent map[string]time.Time
	took []time.Duration
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.writes, c.sent, c.took = 0, 0, make(map[string]time.Time), nil
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		begin := time.Now()
		c.mu.Lock()
		c.requests++
		if r.Method != http.MethodGet {
			c.writes++
		}
		if r.Method == http.MethodPatch && c.sent != nil {
			c.sent[r.URL.Path] = begin
		}
		c.mu.Unlock()
		response, err := next.RoundTrip(r)
		if r.Method == http.MethodPatch {
			c.mu.Lock()
			c.took = append(c.took, time.Since(begin))
			c.mu.Unlock()
		}
		return response, err
	})
}

// perPod is how many requests, and how many writes, were made for each of n pods.
func (c *counter) perPod(n int) (requests, writes float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return float64(c.requests) / float64(n), float64(c.writes) / float64(n)
}

// latency is how many milliseconds the patch in the middle took.
func (c *counter) latency() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return milliseconds(c.took, 0.5)
}

// sentAt is when the status of a pod was last patched, zero if it was not.
func (c *counter) sentAt(pod *v1.Pod) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent["/api/v1/namespaces/"+pod.Namespace+"/pods/"+pod.Name+"/status"]
}

// milliseconds is a quantile of durations.
func milliseconds(durations []time.Duration, q float64) float64 {
	samples := make([]float64, len(durations))
	for i, d := range durations {
		samples[i] = d.Seconds() * 1e3
	}
	return quantile(samples, q)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
