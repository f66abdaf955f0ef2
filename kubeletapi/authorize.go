package kubeletapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// How long decisions are cached, as in the kubelet: allowed decisions are cached longer than denied
// decisions.
const (
	allowedTTL = 5 * time.Minute
	deniedTTL  = 30 * time.Second
	// maxCachedQuestion bounds what one decision takes in memory: its user may be in many groups.
	maxCachedQuestion = 10000
)

// authorizer decides what a user may do on this node. Without access reviews every authenticated user
// may do everything.
type authorizer struct {
	node    string
	access  authorizationclient.SubjectAccessReviewInterface
	decided *reviews[bool]
}

func newAuthorizer(node string, access authorizationclient.SubjectAccessReviewInterface) *authorizer {
	return &authorizer{node: node, access: access, decided: newReviews[bool]()}
}

// authorize reports whether the user may use one of the subresources. Undecided names the subresource whose
// check failed.
func (a *authorizer) authorize(ctx context.Context, user authentication.UserInfo, wanted Attributes) (allowed bool, undecided string, err error) {
	if a.access == nil {
		return true, "", nil
	}
	for _, subresource := range wanted.Subresources {
		allowed, err := a.review(ctx, user, wanted.Verb, subresource)
		if err != nil {
			return false, subresource, err
		}
		if allowed {
			return true, "", nil
		}
	}
	return false, "", nil
}

func (a *authorizer) review(ctx context.Context, user authentication.UserInfo, verb, subresource string) (bool, error) {
	question := authorization.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra(user.Extra),
		ResourceAttributes: &authorization.ResourceAttributes{
			Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: a.node,
		},
	}
	key, err := json.Marshal(question)
	if err != nil {
		return false, err
	}
	return a.decided.get(ctx, string(key), func(ctx context.Context) (bool, time.Duration, error) {
		review, err := a.access.Create(ctx, &authorization.SubjectAccessReview{Spec: question}, metav1.CreateOptions{})
		if err != nil {
			return false, 0, fmt.Errorf("review access: %w", err)
		}
		keep := deniedTTL
		if review.Status.Allowed {
			keep = allowedTTL
		}
		if len(key) > maxCachedQuestion {
			keep = 0
		}
		return review.Status.Allowed && !review.Status.Denied, keep, nil
	})
}

func extra(of map[string]authentication.ExtraValue) map[string]authorization.ExtraValue {
	if len(of) == 0 {
		return nil
	}
	same := make(map[string]authorization.ExtraValue, len(of))
	for key, values := range of {
		same[key] = authorization.ExtraValue(values)
	}
	return same
}
