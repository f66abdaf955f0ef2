package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/status"
)

// Options of a [Fleet]. Client is required.
type Options struct {
	// Client is the client for all nodes without a client of their own. It should have no rate limit, which would make leases wait for
	// pods: use [Clients].
	Client kubernetes.Interface
	// Leases renews the leases of all nodes on a separate connection. Defaults to Client.
	Leases kubernetes.Interface

	// Journal keeps final statuses across crashes until the API server has them: see [github.com/statusd/statusd/journal.Open]. One
	// journal is enough for all nodes.
	Journal status.Ends

	// WatchPerNode watches the pods of each node separately, even if the client may watch all pods.
	WatchPerNode bool

	// Workers limits the requests for pods in flight, QPS and Burst limit their rate; all nodes share the limits. See [status.Options].
	Workers int
	QPS     float64
	Burst   int

	// CompleteReports fills in fields that reports leave out, see [status.Options].
	CompleteReports bool
	// Configure changes the options of the manager before it is created, for options without a
	// field here.
	Configure func(*status.Options)

	// Logger receives warnings and errors; slog.Default() if nil.
	Logger *slog.Logger
	// Registerer registers the metrics of the manager, if set.
	Registerer prometheus.Registerer
}

// NodeOptions are the options of one node. Name and Handler are required.
type NodeOptions struct {
	// Options are the options of the Node. Client and Leases default to the fleet's; a node with its own Client also has its own watch.
	// Without Read all nodes report the machine of this process, which is read once for all of them.
	node.Options
	// Handler runs the pods.
	Handler Handler
}

// Handler runs the pods of a node. The calls for one node come one at a time; see the package comment.
type Handler interface {
	// SyncPod is called for a pod that is new or has changed, including changes by reports of the node itself. SyncPod must not modify
	// the pod, and should not block: later changes of the node's pods wait for its return. Its context ends with the node.
	SyncPod(ctx context.Context, pod *v1.Pod)
	// ForgetPod is called for a pod that the API no longer has, with its last copy. SyncPod was called for the pod before, unless the pod
	// was gone too soon.
	ForgetPod(ctx context.Context, pod *v1.Pod)
}

// Clients returns two clients from one config, for Options.Client and Options.Leases: without rate limits, on separate connections, and
// with protobuf, as a kubelet has, unless the config names a content type.
func Clients(config *rest.Config) (client, leases kubernetes.Interface, err error) {
	for _, to := range []*kubernetes.Interface{&client, &leases} {
		own := rest.CopyConfig(config)
		own.QPS = -1
		if own.ContentType == "" {
			own.ContentType = runtime.ContentTypeProtobuf
			own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		}
		if own.Dial == nil && own.Transport == nil {
			// client-go shares connections of equal configs; a separate dialer makes this config
			// different.
			own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
		}
		if *to, err = kubernetes.NewForConfig(own); err != nil {
			return nil, nil, fmt.Errorf("fleet: %w", err)
		}
	}
	return client, leases, nil
}

func (o *Options) validate() error {
	var problems []error
	if o.Client == nil {
		problems = append(problems, errors.New("fleet: no Client"))
	}
	if o.Workers < 0 || o.QPS < 0 || o.Burst < 0 {
		problems = append(problems, errors.New("fleet: Workers, QPS and Burst must not be negative"))
	}
	return errors.Join(problems...)
}

func (o *Options) setDefaults() {
	if o.Leases == nil {
		o.Leases = o.Client
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}
