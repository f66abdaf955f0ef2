//go:build real

package deploy

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/statusd/statusd/test/controlplane/controlplanetest"
	"github.com/statusd/statusd/test/stock"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { shared.Main(m) }

// serviceMonitors is as much of the Prometheus operator's definition as the API server needs to take its objects.
const serviceMonitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// objects are those of the files of deploy/observe.
func objects(t testing.TB, names ...string) []*unstructured.Unstructured {
	t.Helper()
	all, err := Objects(root, names...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func newApplier(t testing.TB, config *rest.Config) *Applier {
	t.Helper()
	a, err := NewApplier(config)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The API server takes each object, with no field that it does not know.
func TestServerTakesAllManifests(t *testing.T) {
	server := shared.Server(t)
	a := newApplier(t, server.Process.AdminConfig())
	ctx := stock.Context(t)
	definition, err := decode([]byte(serviceMonitors))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(definition, objects(t, "namespace.yaml")...) {
		if err := a.Apply(ctx, o, false); err != nil {
			t.Fatal(err)
		}
	}
	monitor := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	for _, o := range objects(t, append(kustomized(t), optional...)...) {
		err := a.Apply(ctx, o, true)
		if o.GroupVersionKind() == monitor {
			err = stock.Await(ctx, func() error { return a.Apply(ctx, o, true) }) // until its definition is served
		}
		if err != nil {
			t.Error(err)
		}
	}
}
