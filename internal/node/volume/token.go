package volume

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
)

const (
	// defaultLifetime is what a source that says nothing asks for.
	defaultLifetime = time.Hour
	// maxAge is when a token is renewed however long it lives.
	maxAge = 24 * time.Hour
	// minAge keeps an answer with an absurd lifetime from causing a flood of requests.
	minAge = time.Minute
)

// token is a token that was requested before, and when to request the next one.
type token struct {
	value   string
	renewAt time.Time
}

// tokenKey says what a token is for. Sources that ask for the same share one.
type tokenKey struct {
	audience string
	lifetime int64
}

// token returns the pod's token for a source, from memory while it is fresh. If a renewal
// fails, the old one is kept and the error returned beside it: it may be good for a while.
func (c *Contents) token(ctx context.Context, pod *v1.Pod, source *v1.ServiceAccountTokenProjection, now time.Time) (token, error) {
	key := tokenKey{audience: source.Audience, lifetime: int64(defaultLifetime / time.Second)}
	if source.ExpirationSeconds != nil {
		key.lifetime = *source.ExpirationSeconds
	}
	known, have := c.tokens[key]
	if have && now.Before(known.renewAt) {
		return known, nil
	}
	answer, err := c.objects.Token(ctx, pod.Namespace, accountOf(pod), tokenRequest(pod, key))
	if err != nil {
		return known, fmt.Errorf("failed to fetch token: %w", err)
	}
	if answer.Status.Token == "" {
		return known, fmt.Errorf("failed to fetch token: the server answered without a token")
	}
	renewed := token{value: answer.Status.Token, renewAt: now.Add(renewAfter(answer))}
	c.tokens[key] = renewed
	return renewed, nil
}

func accountOf(pod *v1.Pod) string {
	if pod.Spec.ServiceAccountName == "" {
		return "default"
	}
	return pod.Spec.ServiceAccountName
}

// tokenRequest binds the token to the pod: it ends with it.
func tokenRequest(pod *v1.Pod, key tokenKey) *authenticationv1.TokenRequest {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &key.lifetime,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if key.audience != "" {
		request.Spec.Audiences = []string{key.audience}
	}
	return request
}

// renewAfter is 80 % of the lifetime that the server has granted, at most a day. renewAfter counts
// from when the answer came, not from the server's clock, which may differ from ours.
func renewAfter(answer *authenticationv1.TokenRequest) time.Duration {
	lifetime := defaultLifetime
	if granted := answer.Spec.ExpirationSeconds; granted != nil {
		lifetime = time.Duration(max(0, min(*granted, int64(2*maxAge/time.Second)))) * time.Second
	}
	return max(minAge, min(maxAge, lifetime*8/10))
}
