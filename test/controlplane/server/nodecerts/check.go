package nodecerts

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
)

const (
	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// nodeOf is the name of the node that made the request.
func nodeOf(request *certificates.CertificateSigningRequest) (string, error) {
	name, isNode := strings.CutPrefix(request.Spec.Username, userPrefix)
	if !isNode || name == "" || !slices.Contains(request.Spec.Groups, nodesGroup) {
		return "", fmt.Errorf("user %q is not a node", request.Spec.Username)
	}
	return name, nil
}

// check returns why the node may not have the requested serving certificate, or nil.
func check(request *certificates.CertificateSigningRequest, node *v1.Node) error {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("the request is not PEM of a certificate request")
	}
	wanted, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if err := wanted.CheckSignature(); err != nil {
		return err
	}
	if err := checkSubject(wanted, node.Name); err != nil {
		return err
	}
	if err := checkUsages(request.Spec.Usages); err != nil {
		return err
	}
	return checkNames(wanted, node)
}

func checkSubject(wanted *x509.CertificateRequest, node string) error {
	if wanted.Subject.CommonName != userPrefix+node {
		return fmt.Errorf("common name %q is not that of node %s", wanted.Subject.CommonName, node)
	}
	if !slices.Equal(wanted.Subject.Organization, []string{nodesGroup}) {
		return fmt.Errorf("organizations %q: want %s alone", wanted.Subject.Organization, nodesGroup)
	}
	return nil
}

func checkUsages(usages []certificates.KeyUsage) error {
	serves := false
	for _, usage := range usages {
		switch usage {
		case certificates.UsageServerAuth:
			serves = true
		case certificates.UsageDigitalSignature, certificates.UsageKeyEncipherment:
		default:
			return fmt.Errorf("usage %q is not one of a server", usage)
		}
	}
	if !serves {
		return fmt.Errorf("usages %q: want %q", usages, certificates.UsageServerAuth)
	}
	return nil
}

// checkNames compares what the certificate would vouch for with what the Node object lists.
func checkNames(wanted *x509.CertificateRequest, node *v1.Node) error {
	if len(wanted.EmailAddresses) > 0 || len(wanted.URIs) > 0 {
		return errors.New("a server has neither mail addresses nor URIs")
	}
	if len(wanted.DNSNames)+len(wanted.IPAddresses) == 0 {
		return errors.New("no name and no address is requested")
	}
	own := map[string]bool{node.Name: true}
	for _, address := range node.Status.Addresses {
		if ip := net.ParseIP(address.Address); ip != nil {
			own[ip.String()] = true
			continue
		}
		own[address.Address] = true
	}
	for _, name := range wanted.DNSNames {
		if !own[name] {
			return fmt.Errorf("name %s is not one of node %s", name, node.Name)
		}
	}
	for _, ip := range wanted.IPAddresses {
		if !own[ip.String()] {
			return fmt.Errorf("address %s is not one of node %s", ip, node.Name)
		}
	}
	return nil
}
