package virtualkubelet

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// someObjects are one config map, once it is set.
type someObjects struct {
	mu   sync.Mutex
	data map[string]string
}

func (o *someObjects) set(data map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data = data
}

func (o *someObjects) ConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.data == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return &v1.ConfigMap{Data: o.data}, nil
}

func (o *someObjects) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}
