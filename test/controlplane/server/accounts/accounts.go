package accounts

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// ServiceAccount is the name of the account that pods use if they name none.
	ServiceAccount = "default"
	// RootCA is the name of the config map with the authority's certificate, in its key ca.crt.
	RootCA    = "kube-root-ca.crt"
	rootCAKey = "ca.crt"
)

// Keeper keeps service account and config map in every namespace. The zero value is of no use.
type Keeper struct {
	client kubernetes.Interface
	rootCA string
	queue  workqueue.TypedRateLimitingInterface[string] // names of namespaces
}

// New makes a keeper. rootCA is the authority's certificate, PEM. New starts nothing.
func New(client kubernetes.Interface, rootCA []byte) *Keeper {
	return &Keeper{
		client: client,
		rootCA: string(rootCA),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, time.Second)),
	}
}

// Run keeps them until ctx ends: in namespaces that exist, in new ones, and again when one of the
// objects is deleted or the config map is changed. Errors are logged and retried.
func (k *Keeper) Run(ctx context.Context) error {
	namespaces := informers.NewSharedInformerFactory(k.client, 0)
	accounts := k.only(ServiceAccount)
	maps := k.only(RootCA)
	informers := []cache.SharedIndexInformer{
		namespaces.Core().V1().Namespaces().Informer(),
		accounts.Core().V1().ServiceAccounts().Informer(),
		maps.Core().V1().ConfigMaps().Informer(),
	}
	for _, informer := range informers {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: k.enqueue, UpdateFunc: func(_, object any) { k.enqueue(object) }, DeleteFunc: k.enqueue,
		}); err != nil {
			return fmt.Errorf("accounts: %w", err)
		}
	}
	for _, factory := range []interface{ Start(<-chan struct{}) }{namespaces, accounts, maps} {
		factory.Start(ctx.Done())
	}
	stop := context.AfterFunc(ctx, k.queue.ShutDown)
	defer stop()
	for k.next(ctx) {
	}
	for _, factory := range []interface{ Shutdown() }{namespaces, accounts, maps} {
		factory.Shutdown()
	}
	return nil
}

// only is a factory of informers that see the objects of one name.
func (k *Keeper) only(name string) informers.SharedInformerFactory {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) { o.FieldSelector = selector }))
}

// enqueue takes an object of any of the informers.
func (k *Keeper) enqueue(object any) {
	if deleted, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = deleted.Obj
	}
	switch o := object.(type) {
	case *v1.Namespace:
		k.queue.Add(o.Name)
	case metav1.Object:
		k.queue.Add(o.GetNamespace())
	}
}

func (k *Keeper) next(ctx context.Context) bool {
	namespace, closed := k.queue.Get()
	if closed {
		return false
	}
	defer k.queue.Done(namespace)
	if err := k.ensure(ctx, namespace); err != nil {
		if ctx.Err() == nil {
			log.Printf("accounts: namespace %s: %v", namespace, err)
			k.queue.AddRateLimited(namespace)
		}
		return true
	}
	k.queue.Forget(namespace)
	return true
}

// ensure creates missing objects in a namespace, unless the namespace is deleted or being deleted.
func (k *Keeper) ensure(ctx context.Context, name string) error {
	namespace, err := k.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && namespace.Status.Phase == v1.NamespaceTerminating {
		return nil
	}
	if err != nil {
		return err
	}
	// The account comes last: with it pods can be created, and they need the config map.
	if err := k.ensureRootCA(ctx, name); err != nil {
		return err
	}
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: ServiceAccount}}
	_, err = k.client.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (k *Keeper) ensureRootCA(ctx context.Context, namespace string) error {
	maps := k.client.CoreV1().ConfigMaps(namespace)
	want := map[string]string{rootCAKey: k.rootCA}
	found, err := maps.Get(ctx, RootCA, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: RootCA}, Data: want}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
	case err == nil && (len(found.Data) != 1 || found.Data[rootCAKey] != k.rootCA):
		found = found.DeepCopy()
		found.Data = want
		_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
	}
	return err
}
