//go:build real

package apiside

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/test/controlplane/controlplanetest"
)

// realAPI is a real API server as one that can be disturbed.
type realAPI struct {
	t         *testing.T
	server    *controlplanetest.Server
	namespace string
	client    *rest.Config
}

func (r *realAPI) config() *rest.Config { return r.client }
func (r *realAPI) node() string         { return r.namespace } // one without pods of another test
func (r *realAPI) down()                { r.server.Kill(r.t) }
func (r *realAPI) up()                  { r.server.Restart(r.t) }

func (r *realAPI) put(name, node string) types.UID {
	r.t.Helper()
	return r.server.CreatePod(r.t, controlplanetest.Pod(r.namespace, name, node)).UID
}

func (r *realAPI) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *realAPI) say(name, message string) {
	r.t.Helper()
	patch := []byte(`{"status":{"message":"` + message + `"}}`)
	_, err := r.server.Admin().CoreV1().Pods(r.namespace).Patch(r.t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	r.must(err)
}

func (r *realAPI) remove(name string) {
	r.t.Helper()
	r.must(r.server.Admin().CoreV1().Pods(r.namespace).Delete(r.t.Context(), name, *metav1.NewDeleteOptions(0)))
}

func (r *realAPI) label(value string) {
	r.t.Helper()
	nodes := r.server.Admin().CoreV1().Nodes()
	_, err := nodes.Create(r.t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.node()}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		r.t.Fatal(err)
	}
	_, err = nodes.Patch(r.t.Context(), r.node(), types.MergePatchType, []byte(`{"metadata":{"labels":{"test":"`+value+`"}}}`), metav1.PatchOptions{})
	r.must(err)
}

func (r *realAPI) renew(holder string) {
	r.t.Helper()
	leases := r.server.Admin().CoordinationV1().Leases(v1.NamespaceNodeLease)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.node()}}
	_, err := leases.Create(r.t.Context(), lease, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		r.t.Fatal(err)
	}
	_, err = leases.Patch(r.t.Context(), r.node(), types.MergePatchType, []byte(`{"spec":{"holderIdentity":"`+holder+`"}}`), metav1.PatchOptions{})
	r.must(err)
}

func (r *realAPI) backup() (restore func()) {
	r.t.Helper()
	saved := filepath.Join(r.t.TempDir(), "backup")
	data := r.server.Process.DataDir()
	r.down()
	r.copy(data, saved)
	r.up()
	return func() {
		r.down()
		r.must(os.RemoveAll(data))
		r.copy(saved, data)
		r.up()
	}
}

func (r *realAPI) copy(from, to string) {
	r.t.Helper()
	if output, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		r.t.Fatalf("copy %s: %v: %s", from, err, output)
	}
}

func TestRealServer(t *testing.T) {
	server := controlplanetest.Start(t)
	apiCases(t, func(t *testing.T) control {
		return &realAPI{t, server, server.Namespace(t), server.Process.AdminConfig()}
	})
}

// With the kubelet's own credentials the lease is read, and everything else watched.
func TestRealServer_AsANode(t *testing.T) {
	server := shared.Server(t)
	namespace := server.Namespace(t)
	r := &realAPI{t, server, namespace, server.NodeConfig(t, namespace)}
	r.renew("holder")
	r.label("value")
	uid := r.put("mine", r.node())
	w := watchSide(t, Options{Config: r.config(), Node: r.node()})
	facts := w.Await("all of it", func(f audit.API) bool { return known(f) && has(f, uid) && f.Lease != nil && f.NodeObject != nil })
	if !heldBy(facts, "holder") || facts.NodeObject.Labels["test"] != "value" {
		t.Errorf("got %+v and %+v", facts.Lease, facts.NodeObject)
	}

	// The pods of another node are forbidden, which is not the same as none.
	other := watchSide(t, Options{Config: r.config(), Node: "another"})
	refused := other.Await("a refusal", func(f audit.API) bool { return !f.APIAnswer.Silent.IsZero() })
	if refused.APIAnswer.Known() || refused.APIPods != nil {
		t.Errorf("got %+v, want it to be unknown", refused)
	}
}
