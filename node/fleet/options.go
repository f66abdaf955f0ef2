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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/node"
	"github.com/statusd/statusd/status"
)

// Options of a [Fleet]. Client is required.
type Options struct {
	// Client reaches the API server for all nodes that have none of their own. It should have no rate limit, which would make leases wait
	// for pods: [Clients] makes one.
	Client kubernetes.Interface
	// Leases renews the leases of all nodes, on a connection of its own. By default it is Client.
	Leases kubernetes.Interface

	// Journal keeps the ends of pods until the API server has them, through a crash: [github.com/statusd/statusd/journal.Open]. One is
	// enough for all nodes.
	Journal status.Ends

	// WatchPerNode watches the pods of each node by itself, although the client may watch all pods.
	WatchPerNode bool

	// Workers is the most requests for pods that are in flight at once, QPS and Burst limit them; all nodes share them. See [status.Options].
	Workers int
	QPS     float64
	Burst   int

	// CompleteReports fills in what reports leave out, see [status.Options].
	CompleteReports bool
	// Configure changes the options of the manager before it is made, for what has no field here.
	Configure func(*status.Options)

	// Logger takes warnings and errors; slog.Default() if nil.
	Logger *slog.Logger
	// Registerer takes the metrics of the manager, if set.
	Registerer prometheus.Registerer
}

// NodeOptions are those of one node. Name and Handler are required.
type NodeOptions struct {
	// Options are those of the Node. Client and Leases are the fleet's by default; a node that has a Client of its own also has a watch of its
	// own. Without Read all nodes show the machine of this process, which is read once for all of them.
	node.Options
	// Handler runs the pods.
	Handler Handler
}

// Handler runs the pods of a node. The calls for one node come one at a time; see the package comment.
type Handler interface {
	// SyncPod is called for a pod that is new or has changed, also by a report of the node itself. It must not modify the pod, and should
	// not wait: later changes of the node's pods wait for it. Its context ends with the node.
	SyncPod(ctx context.Context, pod *v1.Pod)
	// ForgetPod is called for a pod that the API no longer has, with its last copy. SyncPod has been called for it, unless the pod was gone
	// before that.
	ForgetPod(ctx context.Context, pod *v1.Pod)
}

// Clients returns two clients of one config without rate limits and on connections of their own: for Options.Client and Options.Leases.
func Clients(config *rest.Config) (client, leases kubernetes.Interface, err error) {
	for _, to := range []*kubernetes.Interface{&client, &leases} {
		own := rest.CopyConfig(config)
		own.QPS = -1
		if own.Dial == nil && own.Transport == nil {
			// client-go shares connections of equal configs; a dialer of its own makes this one different.
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
