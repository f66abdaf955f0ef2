package deploy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/statusd/statusd/internal/controlplanetest"
	"github.com/statusd/statusd/internal/stock"
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

// kustomized are the files that are applied by default.
func kustomized(t testing.TB) []string {
	t.Helper()
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(readFile(t, "deploy/observe/kustomization.yaml"), &kustomization); err != nil {
		t.Fatal(err)
	}
	return kustomization.Resources
}

// optional are the files for what is off by default.
var optional = []string{"writer.yaml", "repair.yaml", "guard.yaml", "servicemonitor.yaml"}

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

// Every file is either applied by default or listed as optional.
func TestEveryManifestIsKnown(t *testing.T) {
	known := map[string]bool{"kustomization.yaml": true}
	for _, name := range append(kustomized(t), optional...) {
		known[name] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "observe", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[filepath.Base(file)] {
			t.Errorf("%s is neither in kustomization.yaml nor optional", file)
		}
	}
	readme := string(readFile(t, "deploy/README.md"))
	for name := range known {
		if !strings.Contains(readme, fmt.Sprintf("observe/%s", name)) {
			t.Errorf("deploy/README.md does not explain observe/%s", name)
		}
	}
}
