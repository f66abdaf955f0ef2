package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/certificate"

	"github.com/statusd/statusd/internal/certmanager"
	"github.com/statusd/statusd/internal/wholefile"
)

// lookEvery is the interval at which the certificate manager, which sends no notification, is
// polled for a certificate.
const lookEvery = 100 * time.Millisecond

// remindEvery is the interval of log lines during the wait.
const remindEvery = time.Minute

// Needed reports whether there is no kubeconfig yet, or its certificate is missing or has expired.
// An unreadable kubeconfig is an error; a kubeconfig with other credentials is accepted.
func Needed(kubeconfig string, now time.Time) (bool, error) {
	if _, err := os.Stat(kubeconfig); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	config, err := load(kubeconfig)
	if errors.Is(err, fs.ErrNotExist) { // of the certificate
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if len(config.CertData) == 0 {
		return false, nil
	}
	block, _ := pem.Decode(config.CertData)
	if block == nil {
		return false, fmt.Errorf("bootstrap: kubeconfig %s: its client certificate is not PEM", kubeconfig)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false, fmt.Errorf("bootstrap: kubeconfig %s: %w", kubeconfig, err)
	}
	return now.After(leaf.NotAfter), nil
}

// Obtain gets a certificate, unless a good one is there, and writes the kubeconfig. Obtain returns when
// that is done or ctx ends; a request that is denied or not approved is made again.
func Obtain(ctx context.Context, o Options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	first, err := load(o.Bootstrap)
	if err != nil {
		return err
	}
	manager, err := o.manager(func(*tls.Certificate) (kubernetes.Interface, error) { return kubernetes.NewForConfig(first) })
	if err != nil {
		return err
	}
	o.Logger.Info("requesting a client certificate", "node", o.NodeName, "server", first.Host)
	manager.Start()
	defer manager.Stop()
	look, remind := time.NewTicker(lookEvery), time.NewTicker(remindEvery)
	defer look.Stop()
	defer remind.Stop()
	for manager.Current() == nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("bootstrap: no certificate yet: %w", ctx.Err())
		case <-remind.C:
			o.Logger.Info("still waiting for the certificate request to be approved and signed; kubectl get csr lists it")
		case <-look.C:
		}
	}
	o.Logger.Info("client certificate obtained", "expires", manager.Current().Leaf.NotAfter)
	return o.writeKubeconfig(first)
}

// Renew keeps the certificate from expiring until ctx ends, then returns nil. Without a certificate
// of [Obtain] in the directory there is nothing to renew.
func Renew(ctx context.Context, o Options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	if _, err := os.Stat(o.CertificateFile()); err != nil {
		<-ctx.Done()
		return nil
	}
	manager, err := o.manager(o.renewalClient)
	if err != nil {
		return err
	}
	manager.Start()
	<-ctx.Done()
	manager.Stop()
	return nil
}

// renewalClient asks with the current certificate, or like the first time if it has expired.
func (o *Options) renewalClient(current *tls.Certificate) (kubernetes.Interface, error) {
	if current == nil && o.Bootstrap != "" {
		config, err := load(o.Bootstrap)
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfig(config)
	}
	config, err := load(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

func (o *Options) manager(client certificate.ClientsetFunc) (*certmanager.Manager, error) {
	if err := os.MkdirAll(o.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	store, err := o.store()
	if err != nil {
		return nil, err
	}
	manager, err := certmanager.New(certificate.Config{
		ClientsetFn: client,
		Template: &x509.CertificateRequest{Subject: pkix.Name{
			CommonName: "system:node:" + o.NodeName, Organization: []string{"system:nodes"},
		}},
		SignerName:       certificates.KubeAPIServerClientKubeletSignerName,
		Usages:           []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth},
		CertificateStore: store,
	}, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	return manager, nil
}

// writeKubeconfig writes a kubeconfig for the server of the given config that uses the newest
// certificate, whichever that is when it is read.
func (o *Options) writeKubeconfig(server *rest.Config) error {
	const name = "statusd"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: server.Host, CertificateAuthorityData: server.CAData,
			InsecureSkipTLSVerify: server.Insecure, TLSServerName: server.ServerName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificate: o.CertificateFile(), ClientKey: o.CertificateFile()}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("bootstrap: kubeconfig: %w", err)
	}
	if err := wholefile.Write(o.Kubeconfig, content); err != nil {
		return fmt.Errorf("bootstrap: kubeconfig: %w", err)
	}
	return nil
}
