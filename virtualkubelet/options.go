package virtualkubelet

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/statusd/statusd/status"
)

// Options of [Run]. Client, NodeName and Provider are required.
type Options struct {
	// Client is the client of the API server. Its user needs the rights of a node: see
	// docs/use/providers.md.
	Client kubernetes.Interface
	// NodeName is the name of the Node.
	NodeName string
	// Provider runs the pods.
	Provider Provider

	// Journal keeps final statuses across crashes until the API server has them: see [github.com/statusd/statusd/journal.Open].
	// Without a journal, a final status that was not sent when the process is killed is lost, and is read from the provider
	// again.
	Journal status.Ends

	// Configure changes the Node, after the provider's ConfigureNode. See package node.
	Configure func(*v1.Node)
	// Taints are the taints of a newly created Node. Default statusd/embedded:NoSchedule; an empty list means no
	// taints.
	Taints []v1.Taint
	// Addresses are the IP addresses of the node; read from the machine if empty.
	Addresses []string
	// Version is shown as part of the node's version.
	Version string

	// Listener serves the kubelet's API, for kubectl logs, exec, attach, port-forward and top. Nil: not served.
	Listener net.Listener
	// ClientCAFile has the authorities whose client certificates the kubelet's API accepts; empty: tokens only.
	ClientCAFile string
	// CertificateDir contains the certificate of the kubelet's API, which is created if missing. Required with Listener.
	CertificateDir string

	// PollInterval is how often the status of a pod is read from a provider without NotifyPods. Default 5 s.
	PollInterval time.Duration
	// CheckInterval is how often the status is read from a provider with NotifyPods, to detect lost notifications
	// and pods. Default 1 min.
	CheckInterval time.Duration
	// Calls is the maximum number of concurrent calls of the provider. A call that takes longer than 5 s stops counting.
	// Default 20.
	Calls int
	// CallTimeout is the timeout of the context of a call. Default 2 min.
	CallTimeout time.Duration

	// OnRepair, if set, is called for each repair of a report. It must not block.
	OnRepair func(pod *v1.Pod, repair Repaired)

	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Registerer, if set, registers the metrics.
	Registerer prometheus.Registerer
}

func (o *Options) validate() error {
	var problems []error
	if o.Client == nil {
		problems = append(problems, errors.New("virtualkubelet: no Client"))
	}
	if o.NodeName == "" {
		problems = append(problems, errors.New("virtualkubelet: no NodeName"))
	}
	if o.Provider == nil {
		problems = append(problems, errors.New("virtualkubelet: no Provider"))
	}
	if o.Listener != nil && o.CertificateDir == "" {
		problems = append(problems, errors.New("virtualkubelet: a Listener needs a CertificateDir"))
	}
	if o.PollInterval < 0 || o.CheckInterval < 0 || o.Calls < 0 || o.CallTimeout < 0 {
		problems = append(problems, errors.New("virtualkubelet: intervals, timeouts and numbers must not be negative"))
	}
	return errors.Join(problems...)
}

func (o *Options) setDefaults() {
	if o.Taints == nil {
		o.Taints = []v1.Taint{{Key: "statusd/embedded", Effect: v1.TaintEffectNoSchedule}}
	}
	o.PollInterval = cmp.Or(o.PollInterval, 5*time.Second)
	o.CheckInterval = cmp.Or(o.CheckInterval, time.Minute)
	o.Calls = cmp.Or(o.Calls, 20)
	o.CallTimeout = cmp.Or(o.CallTimeout, 2*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("node", o.NodeName)
}
