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
	// NodeName is the node in the authorization checks of clients.
	NodeName string
	// Listener accepts the connections. It is closed when Run returns.
	Listener net.Listener
	// Certificate is the source of the serving certificate.
	Certificate CertificateSource
	// ClientCA are the authorities whose client certificates are accepted; nil: no client
	// certificates.
	ClientCA *Roots
	// Client sends TokenReviews and SubjectAccessReviews to the API server. If nil, tokens are not accepted, and
	// every client with a certificate of ClientCA has all rights.
	Client kubernetes.Interface

	// Pods are the pods of the node.
	Pods Pods
	// Runtime runs the pods. Its optional interfaces are used: [runtime.Streamer] for exec, attach and
	// port-forward, [runtime.Statser] for the stats of pods.
	Runtime runtime.Runtime
	// Containers serves requests about containers in place of a Runtime.
	Containers *Containers

	// Metrics and ProbeMetrics are served at /metrics and /metrics/probes; nil: not served.
	Metrics, ProbeMetrics prometheus.Gatherer
	// Config returns the config for /configz; it must hold no secrets. Nil: not included.
	Config func() any
	// Healthy returns an error if the agent does not work, and does not return while the agent is stuck. Nil:
	// always healthy.
	Healthy func() error
	// Usage measures the whole machine. If nil, /proc is read.
	Usage func() (Usage, error)

	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// Pods are the pods of the node, each with the status that the node reports. The server does not modify
// returned pods, and they must not change later.
type Pods interface {
	// All returns the pods in any order, including static pods.
	All() []*v1.Pod
	// ByName returns the pod with this name. For a static pod it returns the static pod, not the
	// mirror pod.
	ByName(namespace, name string) (*v1.Pod, bool)
	// TranslateUID returns the UID of the static pod for the UID of its mirror pod, and any other
	// UID unchanged.
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
