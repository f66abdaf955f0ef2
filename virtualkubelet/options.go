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
	// Client reaches the API server. Its user may do what a node does: docs/use/providers.md has the rights.
	Client kubernetes.Interface
	// NodeName is the name of the Node.
	NodeName string
	// Provider runs the pods.
	Provider Provider

	// Journal keeps the ends of pods until the API server has them, through a crash: [github.com/statusd/statusd/journal.Open].
	// Without one, an end that was not sent when the process is killed is lost, and the pod is then asked of the provider again.
	Journal status.Ends

	// Configure changes the Node, after the provider's ConfigureNode. See package node.
	Configure func(*v1.Node)
	// Taints are those of a Node that is created. By default statusd/embedded:NoSchedule; an empty list means none.
	Taints []v1.Taint
	// Addresses are the IP addresses of the node; found on the machine if empty.
	Addresses []string
	// Version is shown as part of the node's version.
	Version string

	// Listener is where the kubelet's API is served, for kubectl logs, exec, attach, port-forward and top. Nil: nowhere.
	Listener net.Listener
	// ClientCAFile has the authorities whose client certificates the kubelet's API accepts; empty: tokens only.
	ClientCAFile string
	// CertificateDir keeps the certificate of the kubelet's API, which is made there if there is none. Required with Listener.
	CertificateDir string

	// PollInterval is how often a provider that does not notify is asked for the status of a pod. Default 5 s.
	PollInterval time.Duration
	// CheckInterval is how often a provider that notifies is asked all the same, so that lost notifications and pods
	// are noticed. Default 1 min.
	CheckInterval time.Duration
	// Calls is how many calls of the provider may be under way at once. A call that takes longer than 5 s stops counting.
	// Default 20.
	Calls int
	// CallTimeout ends the context of a call. Default 2 min.
	CallTimeout time.Duration

	// OnRepair is called for each repair of a report, if set. It must not block.
	OnRepair func(pod *v1.Pod, repair Repaired)

	// Logger takes what happens. By default it is slog.Default().
	Logger *slog.Logger
	// Registerer takes the metrics, if set.
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
