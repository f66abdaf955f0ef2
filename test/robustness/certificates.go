package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// authority issues the certificates of the link between agent and gateway.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      atomic.Int64
	server      atomic.Pointer[tls.Certificate] // that the gateway has
	path        string                          // of the agent's certificate and key
}

// longValid is how long a certificate is valid that no fault touches: longer than any campaign.
const longValid = 10 * 365 * 24 * time.Hour

func newAuthority(path string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, path: path}
	template := a.template("authority", longValid)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, errors.Join(a.renewServer(longValid), a.renewClient(longValid))
}

func (a *authority) template(name string, valid time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial.Add(1)), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-longValid), NotAfter: time.Now().Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

// issue makes a certificate with a new key. One that is valid for less than no time has expired.
func (a *authority) issue(name string, valid time.Duration) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, a.template(name, valid), a.certificate, key.Public(), a.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// renewServer gives the gateway another certificate, for connections to come.
func (a *authority) renewServer(valid time.Duration) error {
	issued, err := a.issue("gateway", valid)
	if err == nil {
		a.server.Store(issued)
	}
	return err
}

// renewClient gives the agent another certificate, in a file that is replaced as a whole.
func (a *authority) renewClient(valid time.Duration) error {
	issued, err := a.issue("agent", valid)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	if err != nil {
		return err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	next := filepath.Join(filepath.Dir(a.path), "."+filepath.Base(a.path))
	return errors.Join(os.WriteFile(next, text, 0o600), os.Rename(next, a.path))
}

// pem is the certificate of the authority.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// config is the gateway's side of the link. As an API server, the gateway accepts any certificate of a client, and answers 401 while one is not
// valid.
func (a *authority) config() *tls.Config {
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{*a.server.Load()}}, nil
	}}
}
