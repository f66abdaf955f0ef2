package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/statusd/statusd/test/controlplane/server/accounts"
	"github.com/statusd/statusd/test/controlplane/server/pki"
)

// readyPaths all answer 200 once the server is ready. The namespaces are made by a loop that the
// server does not wait for itself, and their service accounts by another one; a client that finds
// them missing takes it for a broken cluster.
var readyPaths = []string{
	readyz,
	serviceAccountIn("default"),
	serviceAccountIn("kube-system"),
	serviceAccountIn("kube-public"),
	serviceAccountIn("kube-node-lease"),
}

// readyz answers 200 when the server itself is ready.
const readyz = "/readyz"

func serviceAccountIn(namespace string) string {
	return "/api/v1/namespaces/" + namespace + "/serviceaccounts/" + accounts.ServiceAccount
}

// awaitReady returns nil when each path has answered 200 and an error only if ctx ends first: a server that
// cannot become ready fails by itself.
func awaitReady(ctx context.Context, server string, authority *pki.Authority, paths []string) error {
	client, err := adminClient(authority)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for _, path := range paths {
		for get(ctx, client, server+path) != nil {
			select {
			case <-retry.C:
			case <-ctx.Done():
				return fmt.Errorf("stopped before the API server was ready: %w", ctx.Err())
			}
		}
	}
	return nil
}

func adminClient(authority *pki.Authority) (*http.Client, error) {
	pair, err := authority.IssueClient("controlplane", "system:masters")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority.Certificate()) {
		return nil, errors.New("certificate authority: not PEM")
	}
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: trusted}},
	}, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
