package kubeletside

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Where a stock kubelet serves its pods.
const (
	// DefaultSocket is where the Pods API is, if the feature gate PodsAPI is on.
	DefaultSocket = "/var/lib/kubelet/pods-api/pods-api.sock"
	DefaultURL    = "https://127.0.0.1:10250"
)

// Defaults of the options.
const (
	DefaultPace     = 10 * time.Second
	DefaultLeast    = time.Second
	DefaultTimeout  = 3 * time.Second
	DefaultMaxBytes = 64 << 20
)

// Options configure a [Side]. Node and one of Socket and URL are required.
type Options struct {
	// Node is the name of the node. The answer of the kubelet of another node is refused.
	Node string
	// Socket is the path of the Pods API's socket. It is preferred if it exists.
	Socket string
	// URL is the kubelet's HTTPS endpoint.
	URL string

	// CAFile has the certificates that the kubelet's is checked against. A kubelet that has
	// signed its certificate itself is checked against that certificate (kubelet.crt).
	CAFile string
	// Insecure: the kubelet's certificate is not checked.
	Insecure bool
	// ServerName is the name in the kubelet's certificate, if it is not the host of URL.
	ServerName string
	// CertFile and KeyFile are the client certificate, TokenFile a bearer token. The files are read
	// again for each connection and request, so that they may be renewed.
	CertFile, KeyFile string
	TokenFile         string

	// Pace is the time between two looks, Least the shortest such time after [Side.Refresh].
	Pace, Least time.Duration
	// Timeout is how long an answer may take.
	Timeout time.Duration
	// MaxBytes is how large an answer may be.
	MaxBytes int

	// Changed is called for each pod that has changed, and with an empty UID when the side begins or
	// ceases to answer. It must return at once.
	Changed func(types.UID)
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.Pace = cmp.Or(o.Pace, DefaultPace)
	o.Least = cmp.Or(o.Least, min(DefaultLeast, o.Pace))
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	if o.Changed == nil {
		o.Changed = func(types.UID) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// Validate reports everything that is wrong with the options.
func (o *Options) Validate() error {
	var problems []error
	if o.Node == "" {
		problems = append(problems, errors.New("no Node"))
	}
	if o.Socket == "" && o.URL == "" {
		problems = append(problems, errors.New("neither Socket nor URL"))
	}
	if u, err := url.Parse(o.URL); o.URL != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		problems = append(problems, fmt.Errorf("URL %q is not https://HOST:PORT", o.URL))
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		problems = append(problems, errors.New("CertFile and KeyFile go together"))
	}
	if o.Insecure && o.CAFile != "" {
		problems = append(problems, errors.New("CAFile and Insecure contradict each other"))
	}
	if o.Timeout < 0 || o.MaxBytes < 0 {
		problems = append(problems, errors.New("negative Timeout or MaxBytes"))
	}
	return errors.Join(problems...)
}
