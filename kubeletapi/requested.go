package kubeletapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"

	"github.com/statusd/statusd/internal/certmanager"
	"github.com/statusd/statusd/internal/wake"
)

// Requested is a certificate of the signer kubernetes.io/kubelet-serving, requested by a
// CertificateSigningRequest and renewed before it expires. Connections are refused until a person or a
// controller has approved the request.
type Requested struct {
	manager *certmanager.Manager
	log     *slog.Logger
}

// RequestOptions configure a [Requested] certificate. All but Logger are required.
type RequestOptions struct {
	// Client acts as system:node:NAME: the signer signs for no other user.
	Client kubernetes.Interface
	// NodeName is the node that the certificate is for.
	NodeName string
	// Directory keeps keys and certificates, readable by their owner only.
	Directory string
	// Host and Addresses are the names and IP addresses of the node. When they change, a new certificate is
	// requested.
	Host      string
	Addresses func() []string
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

// NewRequested prepares the request. [Requested.Run] sends it.
func NewRequested(o RequestOptions) (*Requested, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("server: certificate: %w", err)
	}
	store, err := certificate.NewFileStore("server-"+o.NodeName, o.Directory, o.Directory, "", "")
	if err != nil {
		return nil, fmt.Errorf("server: certificate: %w", err)
	}
	manager, err := certmanager.New(certificate.Config{
		ClientsetFn:      func(*tls.Certificate) (kubernetes.Interface, error) { return o.Client, nil },
		GetTemplate:      func() *x509.CertificateRequest { return request(o.NodeName, o.Host, o.Addresses()) },
		SignerName:       certificates.KubeletServingSignerName,
		GetUsages:        certificate.DefaultKubeletServingGetUsages,
		CertificateStore: store,
	}, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("server: certificate: %w", err)
	}
	return &Requested{manager: manager, log: o.Logger}, nil
}

// request is nil, which postpones it, while the node has no address: the signer requires one.
func request(node, host string, addresses []string) *x509.CertificateRequest {
	template := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		DNSNames: []string{host},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.DNSNames = nil
		template.IPAddresses = []net.IP{ip}
	}
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		}
	}
	if len(template.IPAddresses) == 0 {
		return nil
	}
	return template
}

// reminder is how often the log says that a certificate is waited for.
const reminder = time.Minute

// Run requests and renews until ctx ends.
func (r *Requested) Run(ctx context.Context) error {
	r.manager.Start()
	defer r.manager.Stop()
	wake.Every(ctx, reminder, func() {
		if r.manager.Current() == nil {
			r.log.Warn("no server certificate: connections are refused until its request is approved; kubectl get csr lists it, kubectl certificate approve NAME approves it")
		}
	})
	return nil
}

// GetCertificate implements [CertificateSource].
func (r *Requested) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := r.manager.Current(); current != nil {
		return current, nil
	}
	return nil, errNoCertificate
}
