package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	sigsyaml "sigs.k8s.io/yaml"

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

// objects are those of the files of deploy/observe, in the order of the files.
func objects(t testing.TB, names ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, name := range names {
		all = append(all, decode(t, name, readFile(t, filepath.Join("deploy", "observe", name)))...)
	}
	return all
}

func decode(t testing.TB, name string, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, &object)
	}
}

// kustomized are the files that are applied by default.
func kustomized(t testing.TB) []string {
	t.Helper()
	var kustomization struct{ Resources []string }
	if err := sigsyaml.Unmarshal(readFile(t, "deploy/observe/kustomization.yaml"), &kustomization); err != nil {
		t.Fatal(err)
	}
	return kustomization.Resources
}

// optional are the files for what is off by default.
var optional = []string{"writer.yaml", "repair.yaml", "servicemonitor.yaml"}

// applier applies objects as kubectl apply --server-side does.
type applier struct {
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	dynamic dynamic.Interface
}

func newApplier(t testing.TB, config *rest.Config) *applier {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &applier{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), dynamic}
}

func (a *applier) apply(ctx context.Context, o *unstructured.Unstructured, dry bool) error {
	kind := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset() // a definition may be new
	}
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = a.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = a.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	content, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: "deploy-test", FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = client.Patch(ctx, o.GetName(), types.ApplyPatchType, content, options)
	return err
}

// The API server takes each object, with no field that it does not know.
func TestServerTakesAllManifests(t *testing.T) {
	server := shared.Server(t)
	a := newApplier(t, server.Process.AdminConfig())
	ctx := t.Context()
	for _, o := range append(decode(t, "definition", []byte(serviceMonitors)), objects(t, "namespace.yaml")...) {
		if err := a.apply(ctx, o, false); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	monitor := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}
	for _, o := range objects(t, append(kustomized(t), optional...)...) {
		err := a.apply(ctx, o, true)
		if o.GroupVersionKind() == monitor {
			err = stock.Await(ctx, func() error { return a.apply(ctx, o, true) }) // until its definition is served
		}
		if err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
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
