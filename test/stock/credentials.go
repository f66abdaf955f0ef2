package stock

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeconfigUntil writes a kubeconfig NAME.kubeconfig into the node's directory and returns its path: a client certificate of
// the node that lasts a day and ends then, which may be in the past.
func (n *Node) KubeconfigUntil(name string, end time.Time) (string, error) {
	certificate, key, err := n.issue(&x509.Certificate{
		Subject:   pkix.Name{CommonName: "system:node:" + n.Name, Organization: []string{"system:nodes"}},
		NotBefore: end.Add(-24 * time.Hour), NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return "", err
	}
	return n.Kubeconfig(name, n.API.Address(), &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
}

// Kubeconfig writes a kubeconfig NAME.kubeconfig for that user and server into the node's directory and returns its path.
func (n *Node) Kubeconfig(name, server string, user *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: n.API.Authority()}
	config.AuthInfos["u"] = user
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	file := filepath.Join(n.dir, name+".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// servingFiles writes a certificate of the kubelet's server and its key into the node's directory.
func (n *Node) servingFiles(address string) (certificate, key string, err error) {
	now := time.Now()
	certificatePEM, keyPEM, err := n.issue(&x509.Certificate{
		Subject:   pkix.Name{CommonName: "system:node:" + n.Name, Organization: []string{"system:nodes"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{n.Name}, IPAddresses: []net.IP{net.ParseIP(address)},
	})
	if err != nil {
		return "", "", err
	}
	certificate, key = filepath.Join(n.dir, "serving.crt"), filepath.Join(n.dir, "serving.key")
	return certificate, key, errors.Join(os.WriteFile(certificate, certificatePEM, 0o644), os.WriteFile(key, keyPEM, 0o600))
}

// issue returns a certificate of the cluster's authority, completed by a serial number and the use of its key, and that key.
func (n *Node) issue(template *x509.Certificate) (certificatePEM, keyPEM []byte, err error) {
	pki := filepath.Dir(n.API.Authority())
	authorityDER, err := readPEM(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, nil, err
	}
	authority, err := x509.ParseCertificate(authorityDER)
	if err != nil {
		return nil, nil, err
	}
	signerDER, err := readPEM(filepath.Join(pki, "ca.key"))
	if err != nil {
		return nil, nil, err
	}
	signer, err := x509.ParseECPrivateKey(signerDER)
	if err != nil {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}

func readPEM(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM", file)
	}
	return block.Bytes, nil
}
