package apiobjects

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/statusd/statusd/internal/node/volume"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func object(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

// patience bounds the wait for what must come.
const patience = 10 * time.Minute

// bell counts calls and lets a test wait for one.
type bell struct{ rung chan struct{} }

func newBell() *bell { return &bell{rung: make(chan struct{}, 100)} }

func (b *bell) ring() { b.rung <- struct{}{} }

func (b *bell) await(t *testing.T, what string) {
	t.Helper()
	select {
	case <-b.rung:
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
	}
}

func (b *bell) silence() {
	for {
		select {
		case <-b.rung:
		default:
			return
		}
	}
}

func TestObjectsAreReadAndMissingOnesAreKnown(t *testing.T) {
	client := fake.NewClientset(&v1.ConfigMap{ObjectMeta: object("settings"), Data: map[string]string{"a": "b"}}, &v1.Secret{ObjectMeta: object("keys")})
	objects := New(client, slog.New(slog.DiscardHandler))
	if got, err := objects.ConfigMap(t.Context(), "shop", "settings"); err != nil || got.Data["a"] != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := objects.Secret(t.Context(), "shop", "keys"); err != nil {
		t.Error(err)
	}
	_, err := objects.ConfigMap(t.Context(), "shop", "none")
	_, secretErr := objects.Secret(t.Context(), "other", "keys")
	if !errors.Is(err, volume.ErrNotFound) || !errors.Is(secretErr, volume.ErrNotFound) {
		t.Errorf("got %v and %v, want not found", err, secretErr)
	}
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("server is down")
	})
	if _, err := objects.Secret(t.Context(), "shop", "keys"); err == nil || errors.Is(err, volume.ErrNotFound) {
		t.Errorf("got %v, want an error that does not say that the object is missing", err)
	}
}

func TestATokenIsRequestedOfTheServiceAccount(t *testing.T) {
	client := fake.NewClientset(&v1.ServiceAccount{ObjectMeta: object("default")})
	client.PrependReactor("create", "serviceaccounts/token", func(action clienttesting.Action) (bool, runtime.Object, error) {
		request := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
		request.Status.Token = "token in " + action.GetNamespace()
		return true, request, nil
	})
	got, err := New(client, nil).Token(t.Context(), "shop", "default", &authenticationv1.TokenRequest{})
	if err != nil || got.Status.Token != "token in shop" {
		t.Errorf("got %v, %v", got, err)
	}
}

// Pods hear of their objects while they follow them; pods of one object share its watch.
func TestPodsHearOfTheirObjects(t *testing.T) {
	settings := &v1.ConfigMap{ObjectMeta: object("settings")}
	client := fake.NewClientset(settings)
	objects := New(client, slog.New(slog.DiscardHandler))
	references := []volume.Reference{{Kind: volume.ConfigMap, Namespace: "shop", Name: "settings"}, {Kind: volume.Secret, Namespace: "shop", Name: "keys"}}
	first, second := newBell(), newBell()
	objects.Follow("first", references, first.ring) // before Run, as for pods that are adopted

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := objects.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	first.await(t, "the first look at both objects")
	first.await(t, "the first look at both objects")
	objects.Follow("second", references[:1], second.ring)

	settings.Data = map[string]string{"a": "b"}
	if _, err := client.CoreV1().ConfigMaps("shop").Update(t.Context(), settings, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	first.await(t, "that the first pod hears of the change")
	second.await(t, "that the second pod hears of the change")
	if watches := countWatches(client, "configmaps"); watches != 1 {
		t.Errorf("%d watches of the config map, want one for both pods", watches)
	}

	objects.Follow("first", nil, nil)
	first.silence()
	if err := client.CoreV1().ConfigMaps("shop").Delete(t.Context(), "settings", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second.await(t, "that the second pod hears of the end")
	if len(first.rung) > 0 {
		t.Error("a pod hears of what it does not follow any more")
	}
	objects.Follow("second", nil, nil)
	if len(objects.followed)+len(objects.followers) > 0 {
		t.Errorf("still followed: %v", objects.followed)
	}
}

func countWatches(client *fake.Clientset, resource string) (n int) {
	for _, action := range client.Actions() {
		if action.Matches("watch", resource) {
			n++
		}
	}
	return n
}
