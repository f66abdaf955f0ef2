package doors

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Client is one kind of credentials.
type Client struct {
	Name        string
	Certificate *tls.Certificate // nil: none
	Token       string           // empty: none
}

// right is what a user may do: verbs on subresources of nodes.
type right struct{ verbs, subresources []string }

var everything = right{[]string{"*"}, []string{
	"proxy", "pods", "healthz", "configz", "stats", "metrics", "log", "checkpoint", "statusz",
}}

// certified are users with a certificate of the cluster's authority, with what they may do.
var certified = []struct {
	name string
	right
}{
	{"may-nothing", right{}},
	{"may-all", everything},
	{"may-get-proxy", right{[]string{"get"}, []string{"proxy"}}},
	{"may-get-pods", right{[]string{"get"}, []string{"pods"}}},
	{"may-get-healthz", right{[]string{"get"}, []string{"healthz"}}},
	{"may-get-configz", right{[]string{"get"}, []string{"configz"}}},
	{"may-get-stats", right{[]string{"get"}, []string{"stats"}}},
	{"may-get-metrics", right{[]string{"get"}, []string{"metrics"}}},
	{"may-create-proxy", right{[]string{"create"}, []string{"proxy"}}},
}

// accounts are service accounts, whose tokens are used.
var accounts = []struct {
	name string
	right
	deleted bool
}{
	{"account-may-nothing", right{}, false},
	{"account-may-all", everything, false},
	{"account-deleted", everything, true},
}

// Clients makes all kinds of credentials, and the rights of the users, in a cluster whose authority is kept in a
// directory as ca.crt and ca.key. Clients returns when the API server knows the rights.
func Clients(ctx context.Context, admin kubernetes.Interface, pki, node string) ([]Client, error) {
	cluster, err := LoadAuthority(pki)
	if err != nil {
		return nil, err
	}
	foreign, err := NewAuthority(cluster.certificate.Subject)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	clients := []Client{{Name: "no-credentials"}, {Name: "token-garbage", Token: "garbage"}}
	add := func(name string, by *Authority, template x509.Certificate) {
		if err == nil {
			var pair *tls.Certificate
			if pair, err = by.Sign(template); err == nil {
				clients = append(clients, Client{Name: name, Certificate: pair})
			}
		}
	}
	masters := pkix.Name{CommonName: "root", Organization: []string{"system:masters"}}
	add("wrong-authority", foreign, Certificate(masters, now.Add(-time.Hour), now.Add(time.Hour)))
	add("expired", cluster, Certificate(masters, now.Add(-2*time.Hour), now.Add(-time.Minute)))
	add("not-yet-valid", cluster, Certificate(masters, now.Add(time.Hour), now.Add(2*time.Hour)))
	add("no-user", cluster, Certificate(pkix.Name{Organization: []string{"system:masters"}}, now.Add(-time.Hour), now.Add(time.Hour)))
	serving := Certificate(masters, now.Add(-time.Hour), now.Add(time.Hour))
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	add("not-for-clients", cluster, serving)
	add("masters", cluster, Certificate(masters, now.Add(-time.Hour), now.Add(time.Hour)))
	for _, user := range certified {
		if err == nil {
			err = grant(ctx, admin, node, rbac.Subject{APIGroup: rbac.GroupName, Kind: rbac.UserKind, Name: user.name}, user.name, user.name, user.right)
		}
		add(user.name, cluster, Certificate(pkix.Name{CommonName: user.name}, now.Add(-time.Hour), now.Add(time.Hour)))
	}
	if err != nil {
		return nil, err
	}
	for _, account := range accounts {
		token, err := newToken(ctx, admin, node, account.name, account.right)
		if err != nil {
			return nil, err
		}
		if account.deleted {
			if err := admin.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Delete(ctx, account.name, metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
		}
		clients = append(clients, Client{Name: account.name, Token: token})
	}
	// A certificate that proves nothing does not spoil a token that does.
	wrong, err := foreign.Sign(Certificate(masters, now.Add(-time.Hour), now.Add(time.Hour)))
	if err != nil {
		return nil, err
	}
	all := clients[len(clients)-2]
	return append(clients, Client{Name: "wrong-authority-and-token", Certificate: wrong, Token: all.Token}), nil
}

func newToken(ctx context.Context, admin kubernetes.Interface, node, name string, may right) (string, error) {
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	accounts := admin.CoreV1().ServiceAccounts(account.Namespace)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	subject := rbac.Subject{Kind: rbac.ServiceAccountKind, Namespace: account.Namespace, Name: name}
	if err := grant(ctx, admin, node, subject, "system:serviceaccount:"+account.Namespace+":"+name, name, may); err != nil {
		return "", err
	}
	request, err := accounts.CreateToken(ctx, name, &authentication.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

// grant gives the right and returns when the API server knows it.
func grant(ctx context.Context, admin kubernetes.Interface, node string, subject rbac.Subject, user, name string, may right) error {
	if len(may.verbs) == 0 {
		return nil
	}
	rule := rbac.PolicyRule{Verbs: may.verbs, APIGroups: []string{""}}
	for _, subresource := range may.subresources {
		rule.Resources = append(rule.Resources, "nodes/"+subresource)
	}
	role := &rbac.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "doors-" + name}, Rules: []rbac.PolicyRule{rule}}
	if _, err := admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbac.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbac.Subject{subject},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	for {
		review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorization.SubjectAccessReview{
			Spec: authorization.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorization.ResourceAttributes{
				Verb: may.verbs[0], Resource: "nodes", Subresource: may.subresources[0], Name: node,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if review.Status.Allowed {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// LoadAuthority reads ca.crt and ca.key of a directory.
func LoadAuthority(directory string) (*Authority, error) {
	var blocks []*pem.Block
	for _, name := range []string{"ca.crt", "ca.key"} {
		content, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return nil, err
		}
		block, _ := pem.Decode(content)
		if block == nil {
			return nil, fmt.Errorf("%s is not PEM", name)
		}
		blocks = append(blocks, block)
	}
	parsed, err := x509.ParseCertificate(blocks[0].Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(blocks[1].Bytes)
	return &Authority{parsed, key}, err
}

// NewAuthority makes one.
func NewAuthority(name pkix.Name) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := Certificate(name, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	return &Authority{parsed, key}, err
}

// Certificate is the template of a client's.
func Certificate(subject pkix.Name, begins, ends time.Time) x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // never fails
	return x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: begins, NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// Sign makes a certificate with a key of its own.
func (a *Authority) Sign(template x509.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// SignRequest makes the certificate, in PEM, that a request in PEM asks for.
func (a *Authority) SignRequest(request []byte, template x509.Certificate) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, errors.New("doors: the request is not PEM")
	}
	wanted, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	template.Subject, template.DNSNames, template.IPAddresses = wanted.Subject, wanted.DNSNames, wanted.IPAddresses
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, wanted.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// PEM is the certificate of the authority.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}
