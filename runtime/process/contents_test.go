package process

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/volume"
)

// fakeObjects is an API server with config maps and secrets of namespace default.
type fakeObjects struct {
	mu      sync.Mutex
	maps    map[string]map[string]string
	secrets map[string]map[string][]byte
	tokens  int   // how many were requested
	broken  error // what every request is answered with
	follows map[types.UID]func()
}

func newFakeObjects() *fakeObjects {
	return &fakeObjects{maps: map[string]map[string]string{}, secrets: map[string]map[string][]byte{}, follows: map[types.UID]func(){}}
}

func (f *fakeObjects) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, found := f.maps[name]
	if f.broken != nil {
		return nil, f.broken
	}
	if !found || namespace != "default" {
		return nil, volume.ErrNotFound
	}
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: maps.Clone(data)}, nil
}

func (f *fakeObjects) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, found := f.secrets[name]
	if f.broken != nil {
		return nil, f.broken
	}
	if !found || namespace != "default" {
		return nil, volume.ErrNotFound
	}
	return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: maps.Clone(data)}, nil
}

func (f *fakeObjects) Token(_ context.Context, _, account string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return nil, f.broken
	}
	if request.Spec.BoundObjectRef == nil {
		return nil, errors.New("the token is not bound")
	}
	f.tokens++
	answer := request.DeepCopy()
	answer.Status.Token = "token of " + account
	return answer, nil
}

func (f *fakeObjects) Follow(pod types.UID, references []volume.Reference, changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows[pod] = changed
	if len(references) == 0 {
		delete(f.follows, pod)
	}
}

// change changes something and tells all pods, as a watch does.
func (f *fakeObjects) change(do func()) {
	f.mu.Lock()
	do()
	all := slices.Collect(maps.Values(f.follows))
	f.mu.Unlock()
	for _, changed := range all {
		changed()
	}
}
