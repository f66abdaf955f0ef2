package kubeletapi

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

const (
	// tokenTTL is how long an answer about a token is remembered, whichever it is.
	tokenTTL = 2 * time.Minute
	// maxTokenBytes bounds the tokens that the API server is asked about.
	maxTokenBytes = 64 << 10

	authenticatedGroup   = "system:authenticated"
	unauthenticatedGroup = "system:unauthenticated"
	anonymousUser        = "system:anonymous"
)

// errUnauthorized is the answer to a request that proves no identity.
var errUnauthorized = errors.New("no valid client certificate or bearer token")

// authenticator finds out who a request is from: by a client certificate of the cluster's CA, else by
// a bearer token. Either may be nil.
type authenticator struct {
	clientCA *Roots
	tokens   authenticationclient.TokenReviewInterface
	reviewed *reviews[authentication.TokenReviewStatus]
}

func newAuthenticator(clientCA *Roots, tokens authenticationclient.TokenReviewInterface) *authenticator {
	return &authenticator{clientCA: clientCA, tokens: tokens, reviewed: newReviews[authentication.TokenReviewStatus]()}
}

func (a *authenticator) authenticate(request *http.Request) (authentication.UserInfo, error) {
	user, byCertificate := a.byCertificate(request)
	if byCertificate == nil {
		return user, nil
	}
	token := bearerToken(request.Header)
	if token == "" && wsstream.IsWebSocketRequest(request) {
		token = webSocketToken(request.Header)
	}
	if token == "" || a.tokens == nil {
		return user, byCertificate
	}
	return a.byToken(request.Context(), token)
}

// byCertificate takes common name and organizations of a verified certificate for user and groups.
func (a *authenticator) byCertificate(request *http.Request) (authentication.UserInfo, error) {
	if a.clientCA == nil || request.TLS == nil || len(request.TLS.PeerCertificates) == 0 {
		return authentication.UserInfo{}, errUnauthorized
	}
	leaf := request.TLS.PeerCertificates[0]
	intermediates := x509.NewCertPool()
	for _, c := range request.TLS.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: a.clientCA.Pool(), Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return authentication.UserInfo{}, fmt.Errorf("client certificate: %w", err)
	}
	if leaf.Subject.CommonName == "" {
		return authentication.UserInfo{}, fmt.Errorf("client certificate names no user: %w", errUnauthorized)
	}
	return authentication.UserInfo{
		Username: leaf.Subject.CommonName,
		Groups:   withAuthenticated(leaf.Subject.CommonName, leaf.Subject.Organization),
	}, nil
}

// withAuthenticated adds the group of all users but the anonymous one.
func withAuthenticated(user string, groups []string) []string {
	if user == anonymousUser || slices.Contains(groups, authenticatedGroup) || slices.Contains(groups, unauthenticatedGroup) {
		return groups
	}
	return append(slices.Clone(groups), authenticatedGroup)
}

func bearerToken(header http.Header) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// tokenProtocol is how a client that cannot set headers, such as a browser, sends a token: as one of the protocols that it
// offers. It must offer another one too, because that one cannot be chosen.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

// webSocketToken takes the token out of the protocols.
func webSocketToken(header http.Header) (token string) {
	var others []string
	for _, line := range header.Values(wsstream.WebSocketProtocolHeader) {
		for protocol := range strings.SplitSeq(line, ",") {
			protocol = strings.TrimSpace(protocol)
			encoded, isToken := strings.CutPrefix(protocol, tokenProtocol)
			if !isToken {
				others = append(others, protocol)
				continue
			}
			if decoded, err := base64.RawURLEncoding.DecodeString(encoded); err == nil && token == "" {
				token = string(decoded)
			}
		}
	}
	if token == "" || len(others) == 0 {
		return ""
	}
	header.Set(wsstream.WebSocketProtocolHeader, strings.Join(others, ","))
	return token
}

// byToken asks the API server. What it answered counts for some time, so a token that was revoked
// works that much longer, as on the kubelet.
func (a *authenticator) byToken(ctx context.Context, token string) (authentication.UserInfo, error) {
	if len(token) > maxTokenBytes {
		return authentication.UserInfo{}, errUnauthorized
	}
	digest := sha256.Sum256([]byte(token)) // tokens do not stay in memory
	status, err := a.reviewed.get(ctx, string(digest[:]), func(ctx context.Context) (authentication.TokenReviewStatus, time.Duration, error) {
		review, err := a.tokens.Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			return authentication.TokenReviewStatus{}, 0, fmt.Errorf("review token: %w", err)
		}
		return review.Status, tokenTTL, nil
	})
	if err != nil {
		return authentication.UserInfo{}, err
	}
	if !status.Authenticated {
		return authentication.UserInfo{}, errUnauthorized
	}
	user := status.User
	user.Groups = withAuthenticated(user.Username, user.Groups)
	return user, nil
}
