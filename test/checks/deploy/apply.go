package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Objects are those of files in the directory deploy/observe of a checkout, in their order.
func Objects(checkout string, names ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(checkout, "deploy", "observe", name))
		if err != nil {
			return nil, err
		}
		objects, err := decode(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, &object)
	}
}

// Applier applies objects as kubectl apply --server-side does.
type Applier struct {
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	dynamic dynamic.Interface
}

// NewApplier applies with the rights of that client.
func NewApplier(config *rest.Config) (*Applier, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Applier{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), dynamic}, nil
}

// Apply applies an object; a dry run changes nothing. A field that the server does not know is an error.
func (a *Applier) Apply(ctx context.Context, o *unstructured.Unstructured, dry bool) error {
	kind := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset() // its definition may be new
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
	options := metav1.PatchOptions{FieldManager: "deploy", FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := client.Patch(ctx, o.GetName(), types.ApplyPatchType, content, options); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
