package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/statusd/statusd/test/controlplane/server/datadir"
)

const (
	authorityCertificate = "ca.crt"
	authorityKey         = "ca.key"

	authorityLifetime = 10 * 365 * 24 * time.Hour
	// clockSkew lets a client whose clock is behind accept a fresh certificate.
	clockSkew = time.Hour
)

// Authority signs certificates.
type Authority struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// KeyPair is a certificate and its private key, both PEM.
type KeyPair struct {
	Certificate, Key []byte
}

// Ensure loads the authority kept in dir, or makes one.
func Ensure(dir string, now time.Time) (*Authority, error) {
	authority, err := Load(dir, now)
	if errors.Is(err, os.ErrNotExist) {
		return create(dir, now)
	}
	return authority, err
}

// Load reads the authority kept in dir. The error is os.ErrNotExist if dir has no authority.
func Load(dir string, now time.Time) (*Authority, error) {
	certificatePEM, err := os.ReadFile(filepath.Join(dir, authorityCertificate))
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, authorityKey))
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	authority, err := parse(certificatePEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority in %s: %w: remove the directory to make a new one (kubeconfigs become invalid)", dir, err)
	}
	if now.After(authority.certificate.NotAfter) {
		return nil, fmt.Errorf("certificate authority in %s expired at %s: remove the directory to make a new one", dir, authority.certificate.NotAfter)
	}
	authority.dir = dir
	return authority, nil
}

func parse(certificatePEM, keyPEM []byte) (*Authority, error) {
	certificateBlock, _ := pem.Decode(certificatePEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certificateBlock == nil || keyBlock == nil {
		return nil, errors.New("not PEM")
	}
	certificate, err := x509.ParseCertificate(certificateBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.New("the key does not belong to the certificate")
	}
	return &Authority{certificate: certificate, key: key}, nil
}

func create(dir string, now time.Time) (*Authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "controlplane"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certificate, certificatePEM, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	// The certificate goes last: a crash in between leaves a key that the next start replaces.
	if err := datadir.WriteFile(filepath.Join(dir, authorityKey), keyPEM, 0o600); err != nil {
		return nil, err
	}
	if err := datadir.WriteFile(filepath.Join(dir, authorityCertificate), certificatePEM, 0o600); err != nil {
		return nil, err
	}
	return &Authority{dir: dir, certificate: certificate, key: key}, nil
}

// CertificateFile is where the authority's certificate lies.
func (a *Authority) CertificateFile() string { return filepath.Join(a.dir, authorityCertificate) }

// KeyFile is where the authority's private key lies, for the controller that signs the certificates of nodes.
func (a *Authority) KeyFile() string { return filepath.Join(a.dir, authorityKey) }

// Certificate is the authority's own certificate, PEM; clients must trust it.
func (a *Authority) Certificate() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// IssueClient vouches for a user and its groups: Kubernetes reads the user from the common name and
// the groups from the organizations.
func (a *Authority) IssueClient(user string, groups ...string) (KeyPair, error) {
	pair, err := a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return KeyPair{}, fmt.Errorf("client certificate for %s: %w", user, err)
	}
	return pair, nil
}

// IssueServer vouches for a server under the given names and addresses.
func (a *Authority) IssueServer(names []string, addresses []net.IP) (KeyPair, error) {
	pair, err := a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    names,
		IPAddresses: addresses,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return KeyPair{}, fmt.Errorf("server certificate: %w", err)
	}
	return pair, nil
}

// issue signs for as long as the authority itself is valid.
func (a *Authority) issue(template *x509.Certificate) (KeyPair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return KeyPair{}, err
	}
	template.NotBefore, template.NotAfter = a.certificate.NotBefore, a.certificate.NotAfter
	_, certificatePEM, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return KeyPair{}, err
	}
	return KeyPair{Certificate: certificatePEM, Key: keyPEM}, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, []byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return certificate, encode("CERTIFICATE", der), nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
