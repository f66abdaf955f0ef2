package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	authorization "k8s.io/api/authorization/v1"
	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	versions "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/text"
)

// The versions of API servers that docs/reference/compatibility.md speaks of.
var (
	oldestServer = versions.MustParseGeneric("1.34.0")
	newestServer = versions.MustParseGeneric("1.36")
)

func (e *examination) server() {
	if e.ClientProblem != nil {
		e.add("API server", Failed, e.ClientProblem.Error(), "set kubeconfig to a readable file with the node's credentials")
		return
	}
	if e.Client == nil {
		e.add("API server", Skipped, "the config has no kubeconfig: static pods only", "")
		return
	}
	config := rest.CopyConfig(e.Client)
	config.Timeout = patience
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		err = e.reach(config)
	}
	if err != nil {
		e.add("API server", Failed, config.Host+": "+err.Error(), "compare the address and the authority in the kubeconfig with the server's, and check the routes and firewalls between")
		return
	}
	e.rights(client)
	e.lease(client)
}

// reach asks for the version and compares the clocks: the answer has the server's time in seconds.
func (e *examination) reach(config *rest.Config) error {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return err
	}
	begin := time.Now()
	response, err := httpClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("the credentials are refused (%s)", response.Status)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /version: %s", response.Status)
	}
	var info version.Info
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, 1<<20)).Decode(&info); err != nil {
		return fmt.Errorf("GET /version: %w", err)
	}
	e.judgeVersion(info.GitVersion)
	e.judgeClock(response.Header.Get("Date"), begin, time.Now())
	return nil
}

func (e *examination) judgeVersion(name string) {
	const do = "read docs/reference/compatibility.md: this version is not tested"
	v, err := versions.ParseGeneric(name)
	switch {
	case err != nil:
		e.add("API server", Warning, fmt.Sprintf("version %q cannot be read", name), do)
	case v.LessThan(oldestServer), v.Minor() > newestServer.Minor() || v.Major() > newestServer.Major():
		e.add("API server", Warning, name, do)
	default:
		e.add("API server", OK, name, "")
	}
}

// How far the clocks may be apart. Leases and ages are compared across them.
const (
	clockWarning = 2 * time.Second
	clockFailure = 30 * time.Second
)

// judgeClock: the server has written its date between two times of this machine, cut to the second.
func (e *examination) judgeClock(date string, begin, end time.Time) {
	server, err := http.ParseTime(date)
	if err != nil {
		e.add("clock", Skipped, "the API server's answer has no date", "")
		return
	}
	var apart time.Duration
	switch {
	case server.After(end):
		apart = server.Sub(end)
	case server.Add(time.Second).Before(begin):
		apart = server.Add(time.Second).Sub(begin)
	}
	found := fmt.Sprintf("the server's clock is %s ahead of this machine's", apart.Round(100*time.Millisecond))
	if apart < 0 {
		found = fmt.Sprintf("the server's clock is %s behind this machine's", (-apart).Round(100*time.Millisecond))
	}
	const do = "synchronize both clocks (chrony, systemd-timesyncd): leases are judged by them"
	switch {
	case apart.Abs() >= clockFailure:
		e.add("clock", Failed, found, do)
	case apart.Abs() >= clockWarning:
		e.add("clock", Warning, found, do)
	default:
		e.add("clock", OK, "agrees with the API server's", "")
	}
}

func (e *examination) rights(client kubernetes.Interface) {
	var missing []string
	for _, right := range e.Rights {
		review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(e.ctx, review, metav1.CreateOptions{})
		if err != nil {
			e.add("rights", Skipped, "the API server does not review them: "+err.Error(), "")
			return
		}
		if !answer.Status.Allowed {
			missing = append(missing, describe(right))
		}
	}
	if len(missing) > 0 {
		e.add("rights", Failed, "missing: "+strings.Join(missing, ", "), "apply the roles in deploy/, or use credentials of system:node:"+e.NodeName+" in the group system:nodes")
		return
	}
	e.add("rights", OK, fmt.Sprintf("all %d rights that the config needs", len(e.Rights)), "")
}

func describe(r authorization.ResourceAttributes) string {
	text := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// lease looks whether another process renews the lease of the node.
func (e *examination) lease(client kubernetes.Interface) {
	if !e.OwnsLease {
		return
	}
	lease, err := client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(e.ctx, e.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		e.add("node name", OK, "no node "+e.NodeName+" renews a lease", "")
	case err != nil:
		e.add("node name", Skipped, err.Error(), "")
	default:
		e.judgeLease(lease, time.Now())
	}
}

func (e *examination) judgeLease(lease *coordination.Lease, now time.Time) {
	const lasting = 40 * time.Second // as long as the node controller waits
	renewed := lease.Spec.RenewTime
	if renewed == nil || now.Sub(renewed.Time) > lasting {
		e.add("node name", OK, "no process renews the lease of "+e.NodeName, "")
		return
	}
	found := fmt.Sprintf("the lease of %s was renewed %s ago", e.NodeName, text.Span(now.Sub(renewed.Time)))
	if e.runs {
		e.add("node name", OK, found+", and statusd runs here", "")
		return
	}
	e.add("node name", Failed, found+", and no statusd runs here: another machine or a kubelet has this name", "set another nodeName, or stop the other node")
}

// Watching are the rights to follow a node and its pods. With the selectors the server allows them to the credentials of the node too.
func Watching(node string) []authorization.ResourceAttributes {
	only := func(field string) *authorization.FieldSelectorAttributes {
		return &authorization.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{{Key: field, Operator: metav1.FieldSelectorOpIn, Values: []string{node}}}}
	}
	return []authorization.ResourceAttributes{
		{Verb: "list", Resource: "pods", FieldSelector: only("spec.nodeName")},
		{Verb: "watch", Resource: "pods", FieldSelector: only("spec.nodeName")},
		{Verb: "list", Resource: "nodes", Name: node, FieldSelector: only("metadata.name")},
		{Verb: "watch", Resource: "nodes", Name: node, FieldSelector: only("metadata.name")},
	}
}
