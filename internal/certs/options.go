package certs

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/certificate"
)

// Options configure the requests. All fields except Bootstrap and Logger are required.
type Options struct {
	// NodeName is the node that the certificate is for: user system:node:NAME, group system:nodes.
	NodeName string
	// Directory keeps keys and certificates, readable by their owner only.
	Directory string
	// Kubeconfig is the file to write; it also has the address of the server when a certificate is
	// renewed.
	Kubeconfig string
	// Bootstrap is a kubeconfig that may request certificates, usually with a bootstrap token.
	// [Obtain] needs it; [Renew] uses it if the certificate has expired.
	Bootstrap string
	// Logger defaults to a logger that discards everything.
	Logger *slog.Logger
}

func (o *Options) setDefaults() error {
	if o.NodeName == "" || o.Directory == "" || o.Kubeconfig == "" {
		return errors.New("bootstrap: node name, directory and kubeconfig are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	directory, err := filepath.Abs(o.Directory) // it stands in the kubeconfig
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	o.Directory = directory
	return nil
}

// pair is the prefix of the names of the files of a node. A state directory that changes its node
// must not offer the certificate of the old one.
func (o *Options) pair() string { return "client-" + o.NodeName }

// CertificateFile is where the newest certificate and its key are.
func (o *Options) CertificateFile() string {
	return filepath.Join(o.Directory, o.pair()+"-current.pem")
}

func (o *Options) store() (certificate.FileStore, error) {
	store, err := certificate.NewFileStore(o.pair(), o.Directory, o.Directory, "", "")
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	return store, nil
}

// load reads a kubeconfig and all files that it names.
func load(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return nil, fmt.Errorf("bootstrap: kubeconfig %s: %w", path, err)
	}
	return config, nil
}
