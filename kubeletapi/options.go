package kubeletapi

import (
	"errors"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/runtime"
)

// Options of a [Server]. NodeName, Listener, Certificate, Pods, and one of Runtime and Containers are required.
type Options struct {
	// NodeName is the node whose subresources clients need rights for.
	NodeName string
	// Listener is where the server listens. It is closed when Run returns.
	Listener net.Listener
	// Certificate is what the server shows.
	Certificate CertificateSource
	// ClientCA are the authorities whose client certificates are accepted; nil: none are.
	ClientCA *Roots
	// Client asks the API server who has a token and who may do what. If nil, tokens are not accepted, and every
	// client with a certificate of ClientCA may do everything.
	Client kubernetes.Interface

	// Pods are those of the node.
	Pods Pods
	// Runtime runs them. What it can do beside [runtime.Runtime] is used: [runtime.Streamer] for exec, attach and
	// port-forward, [runtime.Statser] for what pods use.
	Runtime runtime.Runtime
	// Containers serves requests about containers in place of a Runtime.
	Containers *Containers

	// Metrics and ProbeMetrics are served at /metrics and /metrics/probes; nil: none there.
	Metrics, ProbeMetrics prometheus.Gatherer
	// Config is what /configz shows; it must hold no secrets. Nil: nothing.
	Config func() any
	// Healthy returns if the agent is not stuck, and an error if it does not do its work. Nil: always healthy.
	Healthy func() error
	// Usage reads what the machine as a whole uses. If nil, it is read from /proc.
	Usage func() (Usage, error)

	// Logger defaults to one that discards everything.
	Logger *slog.Logger
}

// Pods are the pods of the node, each with the status that the node reports. Pods that are returned are not
// changed by the server, and must not change later.
type Pods interface {
	// All returns them in any order, static pods included.
	All() []*v1.Pod
	// ByName returns one. For a static pod it is the static one, not its mirror.
	ByName(namespace, name string) (*v1.Pod, bool)
	// TranslateUID returns the UID of the static pod for that of its mirror, and any other as it is.
	TranslateUID(types.UID) types.UID
}

func (o *Options) validate() error {
	if o.NodeName == "" || o.Listener == nil || o.Certificate == nil || o.Pods == nil {
		return errors.New("server: node name, listener, certificate and pods are required")
	}
	if (o.Runtime == nil) == (o.Containers == nil) {
		return errors.New("server: want one of Runtime and Containers")
	}
	if o.Client == nil && o.ClientCA == nil {
		return errors.New("server: neither an API server nor a client CA: no request could be authenticated")
	}
	return nil
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Healthy == nil {
		o.Healthy = func() error { return nil }
	}
	if o.Usage == nil {
		o.Usage = readUsage
	}
}
