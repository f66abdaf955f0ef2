// Package inside exposes the parts of a node to the process around it: facts to show and judge, and actions. Package
// agent makes a [Node], internal/run reads it, and package kubeletapi makes a [Server] of a [Serving].
package inside

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/explain"
	"github.com/statusd/statusd/internal/node/pods"
	"github.com/statusd/statusd/internal/node/source"
	"github.com/statusd/statusd/internal/node/worker"
	"github.com/statusd/statusd/internal/process"
	"github.com/statusd/statusd/journal"
	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/status"
)

// Node is a node that is made and not closed yet. Its functions may be called from any goroutine.
type Node struct {
	Name    string
	Table   *pods.Table
	Manager *status.Manager
	Workers *worker.Workers
	Events  *process.Events
	Runtime runtime.Runtime
	Journal *journal.Durable

	// Client, Object, Certificate and Lease belong to a node with an API server; Client and Object are nil else.
	Client      kubernetes.Interface
	Object      *node.Node
	Certificate func() rest.TLSClientConfig // what the client shows to the API server now
	Lease       time.Duration               // 0: the default of package node
	// Manifests are nil if none are configured.
	Manifests *source.Manifests

	// Listed is closed when the pods of all sources were listed.
	Listed <-chan struct{}
	// Pods are the pods of the table with the statuses that the node reports.
	Pods Pods
	// Active returns the pods that have not ended.
	Active func() []*v1.Pod
	// Facts returns the facts of a pod, and NodeFacts of the node, for explanations.
	Facts     func(*v1.Pod) explain.Facts
	NodeFacts func(now time.Time) explain.Node
	// Log returns the last lines of a container's log, for the current or the previous run, formatted by [explain.Tail]. It
	// returns false if the log does not exist or the disk does not respond.
	Log func(ctx context.Context, uid types.UID, container string, previous bool, lines int, bytes int64) ([]string, bool)
	// Here returns this machine as a Node.
	Here func() (*v1.Node, error)
	// Alive returns unless a lock that everything needs is stuck.
	Alive func()
	// NotReady returns why the node cannot take pods, WatchErr why the pods of the API are not followed, and ShuttingDown
	// whether the machine shuts down.
	NotReady, WatchErr func() error
	ShuttingDown       func() bool
	// Endpoints serve the node's own data: health, metrics, changes that are not in the API yet.
	Endpoints *process.Endpoints
	// Parts are what runs, in the order in which it starts.
	Parts []process.Part
}

// Pods are the pods of a node, each with the status that the node reports.
type Pods interface {
	// All returns them in any order, static pods included.
	All() []*v1.Pod
	ByUID(types.UID) (*v1.Pod, bool)
	// ByName returns one. For a static pod it is the static one, not its mirror.
	ByName(namespace, name string) (*v1.Pod, bool)
	// TranslateUID returns the UID of the static pod for a mirror's UID, and any other UID unchanged.
	TranslateUID(types.UID) types.UID
}

// Serving has the parts of a node and its config that a server of the kubelet's API needs.
type Serving struct {
	NodeName string
	Listener net.Listener // the server closes it
	// Former is the previous agent's server in the same process, with the same listener, or nil. The new server takes over its
	// connections: requests in flight complete.
	Former  Server
	Client  kubernetes.Interface // nil: standalone
	Pods    Pods
	Runtime runtime.Runtime
	// Metrics and ProbeMetrics are served at /metrics and /metrics/probes.
	Metrics, ProbeMetrics prometheus.Gatherer
	// Config is served at /configz; nil: nothing.
	Config  func() any
	Healthy func() error
	// Addresses are the node's addresses, Directory is where certificates are kept.
	Addresses func() []string
	Directory string

	ClientCAFile, TLSCertFile, TLSPrivateKeyFile string
	RequestCertificate                           bool
	Logger                                       *slog.Logger
}

// Server serves the kubelet's API.
type Server interface {
	// Parts are the running parts, in the order in which they start. Parts that end with the cause [process.ErrReload] leave
	// connections and requests to the next server, or to Close.
	Parts() []process.Part
	// Close ends all requests, with an error, and all connections. It may be called several times.
	Close() error
}
