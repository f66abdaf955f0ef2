//go:build real

package deploy

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/statusd/statusd/test/binaries"
	"github.com/statusd/statusd/test/stock"
)

// used are the rights that requests have needed, as "VERB RESOURCE".
type used struct {
	mu     sync.Mutex
	rights map[string]bool
}

// answer notes the right that a request needed. One that was missing is noted as such.
func (u *used) answer(r *http.Response) {
	words := strings.Split(strings.Trim(r.Request.URL.Path, "/"), "/")
	at := slices.Index(words, "v1") + 1
	if at == 0 {
		return // not of a resource
	}
	if words[at] == "namespaces" && len(words) > at+2 {
		at += 2
	}
	resource := words[at]
	if len(words) > at+2 {
		resource += "/" + words[at+2]
	}
	verb := map[string]string{http.MethodGet: "list", http.MethodPatch: "patch", http.MethodPost: "create"}[r.Request.Method]
	switch {
	case r.Request.URL.Query().Get("watch") != "":
		verb = "watch"
	case r.Request.Method == http.MethodGet && len(words) > at+1:
		verb = "get" // one object
	}
	right := verb + " " + resource
	if r.StatusCode == http.StatusForbidden {
		right += " (refused)"
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rights[right] = true
}

func (u *used) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []string
	for right := range u.rights {
		all = append(all, right)
	}
	slices.Sort(all)
	return all
}

// granted are the rights of the roles in the files, without that which the kubelet asks for.
func granted(t *testing.T, files ...string) []authorization.ResourceAttributes {
	t.Helper()
	var all []authorization.ResourceAttributes
	for _, o := range objects(t, files...) {
		var role rbac.Role
		if !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if resource != "nodes/pods" {
						name, sub, _ := strings.Cut(resource, "/")
						all = append(all, authorization.ResourceAttributes{Namespace: role.Namespace, Verb: verb, Group: rule.APIGroups[0], Resource: name, Subresource: sub})
					}
				}
			}
		}
	}
	return all
}

// words are rights as "VERB RESOURCE".
func words(rights []authorization.ResourceAttributes) (all []string) {
	for _, r := range rights {
		all = append(all, strings.TrimSuffix(r.Verb+" "+r.Resource+"/"+r.Subresource, "/"))
	}
	slices.Sort(all)
	return all
}

// By default an observer uses each right that rbac.yaml gives, and no other. That of the kubelet's /pods is used in
// TestDaemonSetOnAStockNode.
func TestObserverUsesItsRightsAndNoOthers(t *testing.T) {
	server := shared.Server(t)
	ctx := stock.Context(t)
	a := newApplier(t, server.Process.AdminConfig())
	for _, o := range objects(t, "namespace.yaml", "rbac.yaml") {
		if err := a.Apply(ctx, o, false); err != nil {
			t.Fatal(err)
		}
	}
	rights := granted(t, "rbac.yaml")
	server.AwaitAllowed(t, account, nil, rights...)
	server.Node(t, "used")
	request, err := server.Admin().CoreV1().ServiceAccounts("statusd").CreateToken(ctx, "statusd-observe", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	token, kubeconfig := filepath.Join(dir, "token"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(token, []byte(request.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	u := used{rights: map[string]bool{}}
	proxy, err := stock.NewProxy(server.Process, u.answer)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	if err := proxy.WriteKubeconfig(kubeconfig, token); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(binaries.Path(t, binaries.Statusd), "observe", "--node-name=used", "--kubeconfig="+kubeconfig, "--state-dir="+filepath.Join(dir, "state"),
		"--kubelet-root="+dir, "--healthz-bind-address=127.0.0.1:0", "--cri-endpoint=unix://"+filepath.Join(dir, "none.sock"))
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as asked
	}()
	want := words(rights)
	err = stock.Await(ctx, func() error {
		got := u.all()
		for _, right := range want {
			// A watch may bring the list with it; servers that do not serve that are listed.
			watch := strings.Replace(right, "list ", "watch ", 1)
			if !slices.Contains(got, right) && !slices.Contains(got, watch) {
				return fmt.Errorf("%s is not used; used are %q", right, got)
			}
		}
		return nil
	})
	if err != nil {
		content, _ := os.ReadFile(log.Name())
		t.Fatalf("%v\n%s", err, content)
	}
	for _, right := range u.all() {
		if !slices.Contains(want, right) {
			t.Errorf("%s is used, given are %q", right, want)
		}
	}
}
